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

from crag_core.base.protocols import Clock

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
    is_reading: threading.Lock = field(default_factory=threading.Lock)


class Gauges(Collector):
    """Those of `KNOWN` that somebody has a source for. A source that raises is left out of that scrape, and told once.

    A slow source, such as one that asks a server, is read in a thread of its own: a scrape never waits for it, and the
    first one goes without.
    """

    def __init__(self, registry: CollectorRegistry, clock: Clock = time.monotonic) -> None:
        self._sources: dict[str, _Source] = {}
        self._describe: set[str] = set()
        self._clock = clock
        registry.register(self)

    def watch(self, name: str, read: Read, *, is_slow: bool = False) -> None:
        """A later source takes the place of an earlier one. Raises ValueError for a name that is not in `KNOWN`."""
        if name not in KNOWN:
            raise ValueError(f"expected one of {', '.join(KNOWN)}, found {name}")
        self._sources[name] = _Source(read, is_slow)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """So that registering reads nothing."""
        for name, (meaning, label) in KNOWN.items():
            yield GaugeMetricFamily(name, meaning, labels=[label] if label else [])

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, source in tuple(self._sources.items()):
            meaning, label = KNOWN[name]
            family = GaugeMetricFamily(name, meaning, labels=[label] if label else [])
            if source.is_slow:
                self._read_beside(name, source)
            else:
                source.last = self._read(name, source)
            for value, number in (source.last or {}).items():
                family.add_metric([value] if label else [], number)
            yield family

    def _read_beside(self, name: str, source: _Source) -> None:
        if self._clock() - source.read_at < SLOW_S or not source.is_reading.acquire(blocking=False):
            return

        def work() -> None:
            try:
                source.last = self._read(name, source)
                source.read_at = self._clock()
            finally:
                source.is_reading.release()

        threading.Thread(target=work, name=f"{name}", daemon=True).start()

    def _read(self, name: str, source: _Source) -> Mapping[str, float] | None:
        try:
            found = source.read()
            numbers = found if isinstance(found, Mapping) else {"": found}
            return {str(value): float(number) for value, number in numbers.items()}
        except Exception as error:  # whatever a source meets must not cost the other figures
            if name not in self._describe:
                self._describe.add(name)
                _LOG.warning("%s cannot be read: %s", name, type(error).__name__)
            return None
