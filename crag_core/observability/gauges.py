"""Prometheus gauges that are read at every scrape; a failing one never fails the scrape."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

Read = Callable[[], float | Mapping[str, float]]
"""One number, or one for each value of the gauge's label."""

_LOG = logging.getLogger("crag.metrics")
KNOWN: dict[str, tuple[str, str]] = {
    "crag_runs_waiting": ("Runs that wait in line", ""),
    "crag_index_documents": ("Documents in the index", ""),
    "crag_index_passages": ("Chunks in the index", ""),
    "crag_model_server_busy": ("Calls under way at each model server", "server"),
    "crag_part_works": ("0: the last use of this part (history, cache, audit) failed", "part"),
}
"""Meaning and label of each gauge that can be watched; "": it has none."""
SLOW_S = 30.0
"""A slow figure is read at most so often, beside the scrape, which takes the last one."""


@dataclass
class _Source:
    read: Read
    is_slow: bool
    last: Mapping[str, float] | None = None
    read_at: float = float("-inf")
    has_failed: bool = False
    is_reading: threading.Lock = field(default_factory=threading.Lock)


class Gauges(Collector):
    """Those of `KNOWN` that have a source. A source that raises is left out of that scrape, and logged once.

    A slow source, such as one that asks a server, is read in a thread of its own: a scrape never waits for it, and the
    first one goes without.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sources: dict[str, _Source] = {}
        registry.register(self)

    def watch(self, name: str, read: Read, *, is_slow: bool = False) -> None:
        """A later source takes the place of an earlier one. Raises ValueError for a name that is not in `KNOWN`."""
        if name not in KNOWN:
            raise ValueError(f"expected one of {', '.join(KNOWN)}, found {name}")
        self._sources[name] = _Source(read, is_slow)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """So that registering reads nothing."""
        yield from map(_family, KNOWN)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, source in tuple(self._sources.items()):
            if not source.is_slow:
                _read(name, source)
            elif time.monotonic() - source.read_at >= SLOW_S and source.is_reading.acquire(blocking=False):
                threading.Thread(target=_read_slow, args=(name, source), name=name, daemon=True).start()
            family = _family(name)
            for value, number in (source.last or {}).items():
                family.add_metric([value] if KNOWN[name][1] else [], number)
            yield family


def _family(name: str) -> GaugeMetricFamily:
    meaning, label = KNOWN[name]
    return GaugeMetricFamily(name, meaning, labels=[label] if label else [])


def _read_slow(name: str, source: _Source) -> None:
    try:
        _read(name, source)
        source.read_at = time.monotonic()
    finally:
        source.is_reading.release()


def _read(name: str, source: _Source) -> None:
    try:
        found = source.read()
        numbers = found if isinstance(found, Mapping) else {"": found}
        source.last = {str(value): float(number) for value, number in numbers.items()}
    except Exception as error:  # whatever a source meets must not cost the other figures
        source.last = None
        if not source.has_failed:
            source.has_failed = True
            _LOG.warning("%s cannot be read: %s", name, type(error).__name__)
