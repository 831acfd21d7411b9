"""Prometheus figures of the shared history over the last hour, day and week.

They come from the runs that are kept, so they hold for several processes together and over restarts. Runs can be
deleted, and a counter must not go down, so all are gauges with names of their own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from crag_core.base.errors import CragError
from crag_core.base.protocols import Clock
from crag_core.observability.metrics import new_registry
from crag_core.observability.trends import figures
from crag_core.trace.summary import Ending, Measured

WINDOWS = {"1h": 3600.0, "1d": 86400.0, "7d": 7 * 86400.0, "all": float("inf")}
"""Seconds; the values of the label `window`."""
_LOG = logging.getLogger("crag.metrics")


GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "runs": ("Kept runs, by ending", ("ending",)),
    "decisions": ("Kept runs that were decided, by action", ("action",)),
    "share": ("Shares in 0..1: corrected, searched, improved, failed, ungraded, cached", ("figure",)),
    "seconds": ("Exact quantiles: to the context on the fast or the corrected path, or of all", ("path", "quantile")),
    "model_calls": ("Model calls of kept runs", ()),
    "model_tokens": ("Tokens of kept runs, prompt or completion", ("kind",)),
}
"""Meaning and labels of each, besides `window`."""


class KeptRuns(Collector):
    """Reads the history at every scrape. Where it cannot be read, `crag_history_up` is 0, and there are no figures."""

    def __init__(self, read: Callable[[], Sequence[Measured]], clock: Clock = time.time) -> None:
        self._read = read
        self._clock = clock
        self._problem = ""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """So that registering reads nothing."""
        yield from map(_family, GAUGES)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        runs = self._runs()
        yield GaugeMetricFamily("crag_history_up", "1: the history could be read", value=float(runs is not None))
        if runs is None:
            return
        families = {name: _family(name) for name in GAUGES}
        now = self._clock()
        for window, seconds in WINDOWS.items():
            within = [run for run in runs if run.at >= now - seconds]
            for name, labels, value in _samples(within):
                families[name].add_metric([window, *labels], value)
        yield from families.values()

    def _runs(self) -> Sequence[Measured] | None:
        try:
            found = self._read()
        except CragError as error:
            if str(error) != self._problem:
                _LOG.warning("The history cannot be read: %s", error)
            self._problem = str(error)
            return None
        self._problem = ""
        return found


def registry_of(read: Callable[[], Sequence[Measured]], version: str) -> CollectorRegistry:
    """What `python -m crag_core serve-metrics` serves."""
    registry = new_registry(version)
    registry.register(KeptRuns(read))
    return registry


def _family(name: str) -> GaugeMetricFamily:
    meaning, labels = GAUGES[name]
    return GaugeMetricFamily(f"crag_kept_{name}", meaning, labels=["window", *labels])


def _samples(runs: Sequence[Measured]) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """The figures of the runs of one window; without runs there is none, rather than 0."""
    found = figures(runs)
    for ending in Ending:
        yield "runs", (ending.value,), sum(run.ending is ending for run in runs)
    for action, share in found.actions:
        yield "decisions", (action.value,), share.hits
    for name in ("corrected", "searched", "improved", "failed", "ungraded", "cached"):
        share = getattr(found, name)
        if share.value is not None:
            yield "share", (name,), share.value
    for path, times in (("fast", found.fast), ("corrected", found.slow), ("all", found.total)):
        for quantile, milliseconds in (("0.5", times.p50), ("0.95", times.p95)):
            if milliseconds is not None:
                yield "seconds", (path, quantile), milliseconds / 1000
    yield "model_calls", (), found.calls
    yield "model_tokens", ("prompt",), found.prompt_tokens
    yield "model_tokens", ("completion",), found.completion_tokens
