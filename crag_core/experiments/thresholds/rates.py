"""Confusion table of routes, named rates, and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.statistics.intervals import Estimate, wilson
from crag_core.experiments.thresholds.threshold_board import ACTIONS, AMBIGUOUS, CORRECT, INCORRECT, Array, Board


@dataclass(frozen=True)
class Prices:
    """Seconds of what was not measured while grading: one model call, one web search."""

    call_seconds: float = 5.0
    web_seconds: float = 1.5


@dataclass(frozen=True)
class Rates:
    """Shares with 95 % intervals (Wilson), None where no question could have it.

    `confidently_wrong`: of the questions that the documents do not answer, those that are CORRECT. `missed_web`: of the
    same, those for which the web is not searched. `needless_web`: of the answerable ones, those for which it is.
    `discarded`: of the answerable ones, those that are INCORRECT. `ungraded`: of all, those with a passage that counts
    and has no grade. `right`: of all, those that took an expected route. `web`: of all, those that search the web.
    `calls` and `seconds` are means of a question.
    """

    questions: int
    confidently_wrong: Estimate | None
    needless_web: Estimate | None
    missed_web: Estimate | None
    ungraded: Estimate | None
    discarded: Estimate | None
    right: Estimate | None
    web: Estimate | None
    calls: float
    seconds: float
    macro_f1: float | None


def rate(board: Board, actions: Array, prices: Prices | None = None) -> Rates:
    """Of all questions of `board` when they take `actions`, (n,) places in `ACTIONS`."""
    prices = prices or Prices()
    n = len(board)
    answered, web = board.answerable, _at(board.web, actions)
    calls = _at(board.calls, actions)
    return Rates(
        questions=n,
        confidently_wrong=_share(actions == CORRECT, ~answered),
        needless_web=_share(web, answered),
        missed_web=_share(~web, ~answered),
        ungraded=_share(board.ungraded, np.ones(n, dtype=bool)),
        discarded=_share(actions == INCORRECT, answered),
        right=_share(is_right(board, actions), np.ones(n, dtype=bool)),
        web=_share(web, np.ones(n, dtype=bool)),
        calls=float(calls.mean()) if n else 0.0,
        seconds=float(seconds(board, actions, prices).mean()) if n else 0.0,
        macro_f1=macro_f1(confusion(board, actions)),
    )


def seconds(board: Board, actions: Array, prices: Prices) -> Array:
    """(n,) what a question takes: retrieval and grading as measured, the rest by `prices`."""
    graded = np.array([case.scored.seconds for case in board.cases])
    asked = np.array([case.scored.usage.calls for case in board.cases])
    later = np.maximum(_at(board.calls, actions) - asked, 0)  # the calls for grading are in what was measured
    return np.asarray(graded + later * prices.call_seconds + _at(board.web, actions) * prices.web_seconds)


def is_right(board: Board, actions: Array) -> Array:
    """(n,) whether the route taken is one that is expected."""
    return np.asarray(_accepts()[board.expected, actions])


def confusion(board: Board, actions: Array) -> Array:
    """(4, 3) counts: places in `Expected`, places in `ACTIONS`."""
    counts = np.bincount(board.expected * len(ACTIONS) + actions, minlength=len(Expected) * len(ACTIONS))
    return counts.reshape(len(Expected), len(ACTIONS))


def macro_f1(table: Array) -> float | None:
    """The plain mean of the three routes' F1, of (4, 3) counts; None where a label names no single route."""
    if table[list(Expected).index(Expected.UNANSWERABLE)].any():
        return None
    square = table[: len(ACTIONS)]
    total = square.sum(axis=1) + square.sum(axis=0)
    return float((2 * np.diagonal(square) / np.maximum(total, 1)).mean())


def always(board: Board, action: int) -> Array:
    """(n,) the same action for every question: a baseline that any thresholds should beat."""
    return np.full(len(board), (CORRECT, AMBIGUOUS, INCORRECT)[action])


def _accepts() -> Array:
    return np.array([[action in expected.actions for action in ACTIONS] for expected in Expected])


def _at(table: Array, actions: Array) -> Array:
    """(n,) each question's entry for the action it takes."""
    return np.asarray(table[np.arange(len(actions)), actions])


def _share(hits: Array, among: Array) -> Estimate | None:
    return wilson(int((hits & among).sum()), int(among.sum()))
