"""What a scrape gives, by sample name and labels."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from crag_core.observability.metrics import Metrics

Key = str | tuple[str, Mapping[str, str]]


class Scraped:
    def __init__(self, text: str) -> None:
        self.text = text
        self._samples = [
            (sample.name, dict(sample.labels), sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]
        self.names = {name for name, _, _ in self._samples}

    def __getitem__(self, key: Key) -> float:
        name, labels = (key, {}) if isinstance(key, str) else key
        return next(value for own, given, value in self._samples if own == name and given == dict(labels))

    def all(self, name: str) -> list[tuple[dict[str, str], float]]:
        return [(labels, value) for own, labels, value in self._samples if own == name]

    def labels_of(self, name: str) -> set[str]:
        return {label for labels, _ in self.all(name) for label in labels}


def read(source: Metrics | CollectorRegistry) -> Scraped:
    registry = source.registry if isinstance(source, Metrics) else source
    return Scraped(generate_latest(registry).decode())
