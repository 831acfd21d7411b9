"""Shares, times and costs of many runs, in total and over time, and the targets of description 000."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import quantiles

from crag_core.base.types.decisions import Action
from crag_core.trace.summary import Ending, Measured

CORRECT_TARGET, CORRECTED_TARGET, SEARCHED_TARGET, IMPROVED_TARGET = 0.70, 0.30, 0.10, 0.80
FAST_TARGET, SLOW_TARGET = 70.0, 450.0
"""The targets of description 000: a share of at least, below, below and above; milliseconds of the median below. They
are for questions that the documents are there to answer, so that only the dashboard for such an operation has them."""

FEWEST = 20
"""Runs from which on a 95th percentile says more than the slowest run."""


@dataclass(frozen=True)
class Share:
    """`hits` of `of`."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        """In 0..1; None of nothing."""
        return self.hits / self.of if self.of else None


@dataclass(frozen=True)
class Times:
    """Milliseconds of `count` runs, None where there is none; a quantile between two runs lies between their times."""

    p50: float | None
    p95: float | None
    count: int


@dataclass(frozen=True)
class Figures:
    """`runs` counts all of them; the shares of actions, corrections and searches are of those that were decided.

    `improved` is of those whose correction could be measured, see `Measured`. `fast` are the times from the question to
    the decision where that was CORRECT, `slow` those to the assembled context where it was another, without what the
    web provider took. `ungraded` and `cached` are shares of all grades.
    """

    runs: int
    actions: tuple[tuple[Action, Share], ...]
    searched: Share
    improved: Share
    fast: Times
    slow: Times
    failed: Share
    stopped: Share
    ungraded: Share
    cached: Share
    calls: int
    prompt_tokens: int
    completion_tokens: int

    def of(self, action: Action) -> Share:
        return dict(self.actions)[action]


def figures(runs: Sequence[Measured]) -> Figures:
    decided = [run for run in runs if run.action is not None]
    measured = [run.improved for run in runs if run.improved is not None]
    grades = sum(run.graded + run.ungraded for run in runs)
    return Figures(
        runs=len(runs),
        actions=tuple((action, _share(run.action is action for run in decided)) for action in Action),
        searched=_share(run.searched for run in decided),
        improved=_share(measured),
        fast=_times(run.decided_ms for run in decided if run.action is Action.CORRECT),
        slow=_times(own_retrieval_ms(run) for run in decided if run.action is not Action.CORRECT),
        failed=_share(run.ending is Ending.FAILED for run in runs),
        stopped=_share(run.ending is Ending.STOPPED for run in runs),
        ungraded=Share(sum(run.ungraded for run in runs), grades),
        cached=Share(sum(run.cached for run in runs), grades),
        calls=sum(run.calls for run in runs),
        prompt_tokens=sum(run.prompt_tokens for run in runs),
        completion_tokens=sum(run.completion_tokens for run in runs),
    )


def over_time(runs: Sequence[Measured], edges: Sequence[float]) -> tuple[Figures, ...]:
    """The figures of each span from one edge, which belongs to it, up to the next, which does not.

    `edges` are seconds since 1970, ascending. A span without runs has figures of nothing.
    """
    parts: list[list[Measured]] = [[] for _ in pairwise(edges)]
    for run in runs:
        place = bisect_right(edges, run.at) - 1
        if 0 <= place < len(parts):
            parts[place].append(run)
    return tuple(map(figures, parts))


def own_retrieval_ms(run: Measured) -> float | None:
    """Without what the web provider took."""
    return None if run.retrieval_ms is None else run.retrieval_ms - (run.provider_ms or 0.0)


def _times(found: Iterable[float | None]) -> Times:
    known = [one for one in found if one is not None]
    if not known:
        return Times(None, None, 0)
    cuts = quantiles(known, n=20, method="inclusive") if len(known) > 1 else known * 19
    return Times(cuts[9], cuts[18], len(known))


def _share(found: Iterable[bool]) -> Share:
    every = list(found)
    return Share(sum(every), len(every))
