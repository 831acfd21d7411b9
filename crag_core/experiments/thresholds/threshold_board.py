"""A labelled set under one policy as arrays: the action of every question at any thresholds, and its error rates.

Only the first retrieval counts: a policy that retrieves again (agentic, heuristic) is judged by its first decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision import crag
from crag_core.decision.crag import Evidence, Scored
from crag_core.decision.decide import evidence_of
from crag_core.decision.policy import Policy
from crag_core.decision.signals import SUFFICIENCY
from crag_core.experiments.labelled.graded import Case
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.statistics.intervals import Estimate, proportion
from crag_core.pipeline.call_budget import budget, web_calls

Array = np.ndarray[Any, Any]

ACTIONS = tuple(Action)
CORRECT, AMBIGUOUS, INCORRECT = range(3)
"""Places in `ACTIONS`; so an action is a column of every table here."""


class ComparedScores(NamedTuple):
    """By question: the score compared with `upper`, the one compared with `lower` (NaN: none), an action that no
    threshold changes (-1: none), and whether the grades agree so well that a score between the thresholds counts as
    CORRECT."""

    upper: Array
    lower: Array
    settled: Array
    agrees: Array


def deciding_scores(policy: Policy, questions: Sequence[Evidence], lower: float) -> ComparedScores:
    """What `policy` decides each question by, at `lower`, which has a part in the scores of some policies."""
    if policy.score == "mean_of_kept":
        policy = policy.with_thresholds(lower, max(lower, policy.upper))
    n = len(questions)
    found = ComparedScores(np.full(n, np.nan), np.full(n, np.nan), np.full(n, -1), np.zeros(n, dtype=bool))
    for place, one in enumerate(questions):
        scored = crag.score(policy, one)
        if scored.settled:
            found.settled[place] = ACTIONS.index(scored.settled)
        else:
            found.upper[place] = scored.score
            found.lower[place] = scored.score if scored.topical is None else scored.topical
            found.agrees[place] = scored.agrees
    return found


def nearest(known: ComparedScores, lower: float, upper: float) -> tuple[int, ...]:
    """All places in `known`, the nearest to a threshold that decides it first, in their order where equally near: those
    whose label tells most (uncertainty sampling, Lewis and Gale 1994).

    A question that is CORRECT is not decided by `lower`; one that no threshold decides comes last.
    """
    of_upper, of_lower = np.abs(known.upper - upper), np.abs(known.lower - lower)
    found = np.where(known.upper >= upper, of_upper, np.minimum(of_upper, of_lower))
    return tuple(np.argsort(np.where(known.settled >= 0, np.nan, found), kind="stable").tolist())


class Board:
    """`cases` under `policy`, graded by `judge`. `writer`: a language model is there to rewrite and answer."""

    def __init__(self, policy: Policy, cases: Sequence[Case], judge: EvaluatorCard, *, writer: bool = False) -> None:
        # A question that needs several rounds is the one that thresholds decide.
        of = policy.once_classified()
        self.policy, self.cases = of if writer else of.without_language_model(), tuple(cases)
        self.judge, self.writer = judge, writer
        self._known: dict[float, ComparedScores] = {}

    def __len__(self) -> int:
        return len(self.cases)

    def part(self, which: Array) -> Board:
        """The same policy over some of the questions, (n,) of bool; what was worked out for all is not done again."""
        found = Board(self.policy, [self.cases[n] for n in np.flatnonzero(which)], self.judge, writer=self.writer)
        self.deciding()
        found._known = {at: ComparedScores(*(each[which] for each in known)) for at, known in self._known.items()}
        for name in ("expected", "answerable", "web", "calls", "ungraded"):
            vars(found)[name] = getattr(self, name)[which]  # where a cached property keeps its value
        return found

    @cached_property
    def expected(self) -> Array:
        """(n,) places in `Expected`."""
        places = {expected: place for place, expected in enumerate(Expected)}
        return np.array([places[case.asked.expected] for case in self.cases], dtype=int)

    @cached_property
    def answerable(self) -> Array:
        return np.array([case.asked.expected.is_answerable for case in self.cases], dtype=bool)

    def deciding(self, lower: float | None = None) -> ComparedScores:
        """(n,) each; `lower` None: that of the policy."""
        lower = self.policy.lower if lower is None else lower
        at = lower if self.policy.score == "mean_of_kept" else 0.0  # has `lower` a part in the scores themselves?
        if at not in self._known:
            self._known[at] = deciding_scores(self.policy, self.evidence, at)
        return self._known[at]

    @cached_property
    def evidence(self) -> list[Evidence]:
        """By question; no threshold has a part in it."""
        scored = (case.scored for case in self.cases)
        return [evidence_of(self.policy, one.passages, one.grades, one.signals) for one in scored]

    def reaches_lower(self, lower: float) -> Array:
        """(n,) whether the score for `lower` reaches it, so that a question is not INCORRECT."""
        known = self.deciding(lower)
        reaches = known.lower > lower if self.policy.at_lower is Action.INCORRECT else known.lower >= lower
        return np.where(known.settled >= 0, known.settled != INCORRECT, reaches)

    def is_correct(self, lower: float, uppers: Sequence[float] | Array) -> Array:
        """(n, uppers) CORRECT at `lower` and each of `uppers`."""
        known, at = self.deciding(lower), np.asarray(uppers, dtype=float)
        scores = known.upper[:, None]
        correct = scores > at if self.policy.at_upper is Action.AMBIGUOUS else scores >= at
        correct |= (known.agrees & self.reaches_lower(lower))[:, None]
        return np.where((known.settled >= 0)[:, None], (known.settled == CORRECT)[:, None], correct)

    def actions(self, lower: float | None = None, upper: float | None = None) -> Array:
        """(n,) places in `ACTIONS`, at the policy's thresholds unless others are given."""
        lower = self.policy.lower if lower is None else lower
        upper = self.policy.upper if upper is None else upper
        correct = self.is_correct(lower, [upper])[:, 0]
        return np.where(correct, CORRECT, np.where(self.reaches_lower(lower), AMBIGUOUS, INCORRECT))

    @cached_property
    def web(self) -> Array:
        """(n, actions) whether the web is searched when a question takes that action.

        Where that depends on refinement, something is taken to be left of every passage: sentences are not scored here.
        """
        # Where there is nothing to decide by, AMBIGUOUS is settled, and nothing else settles it.
        known = Scored("score"), Scored("ungraded", settled=Action.AMBIGUOUS, is_known=False)
        by = [known[int(settled == AMBIGUOUS)] for settled in self.deciding().settled]
        plans = (
            crag.plan(self.policy, action, score, seen)
            for seen, score in zip(self.evidence, by, strict=True)
            for action in ACTIONS
        )
        return np.array([plan.web for plan in plans], dtype=bool).reshape(-1, len(ACTIONS))

    @cached_property
    def calls(self) -> Array:
        """(n, actions) model calls of a whole run that takes that action, the answer included.

        The web is taken to find something; rounds after the first retrieval are not counted.
        """
        policy, counts = self.policy.without_retrieval(), [len(case.scored.passages) for case in self.cases]
        known = {count: budget(policy, self.judge, count, writer=self.writer, searches=True) for count in set(counts)}
        least = np.array([[known[count][action].least for action in ACTIONS] for count in counts], dtype=float)
        counted = np.array(["web" in policy.steps(action) for action in ACTIONS])
        search = web_calls(policy, self.judge, writer=self.writer)
        return np.asarray(least.reshape(-1, len(ACTIONS)) + search * (self.web.astype(float) - counted))

    @cached_property
    def ungraded(self) -> Array:
        """(n,) whether a passage that counts has no grade; of a whole context, whether nobody has judged it."""
        return np.array([self._lacks_a_grade(case) for case in self.cases], dtype=bool)

    def _lacks_a_grade(self, case: Case) -> bool:
        scored = case.scored
        if self.policy.judges_together:
            return SUFFICIENCY not in dict(scored.signals)
        known = {grade.passage_id for grade in scored.grades or () if grade.score is not None}
        return any(passage.id not in known for passage in scored.passages[: self.policy.top])


def grid(steps: int) -> Array:
    """`steps` thresholds from 0 to 1, in whole thousandths where they fall on them."""
    return np.round(np.linspace(0.0, 1.0, steps), 6)


# --- rates ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rates:
    """Shares with exact 95 % intervals, None where no question could have it.

    `answered`: of the questions that the documents answer, those that are CORRECT. `confidently_wrong`: of those that
    they do not answer, those that are CORRECT. `missed_web`: of the same, those for which the web is not searched.
    `needless_web`: of the answerable ones, those for which it is. `discarded`: of the answerable ones, those that are
    INCORRECT. `ungraded`: of all, those with a passage that counts and has no grade. `right`: of all, those that took
    an expected route. `web`: of all, those that search the web. `calls` is the mean of a question, `answerable` counts.
    """

    questions: int
    answered: Estimate | None
    confidently_wrong: Estimate | None
    needless_web: Estimate | None
    missed_web: Estimate | None
    ungraded: Estimate | None
    discarded: Estimate | None
    right: Estimate | None
    web: Estimate | None
    calls: float
    answerable: int = 0

    def among(self, name: str) -> int:
        """Of how many questions the share of this name is."""
        if name in ("answered", "needless_web", "discarded"):
            return self.answerable
        return self.questions - self.answerable if name in ("confidently_wrong", "missed_web") else self.questions


def rate(board: Board, actions: Array) -> Rates:
    """Of all questions of `board` when they take `actions`, (n,) places in `ACTIONS`."""
    n, answerable, everything = len(board), board.answerable, np.ones(len(board), dtype=bool)
    accepted = np.array([[action in expected.actions for action in ACTIONS] for expected in Expected])
    web, calls = (table[np.arange(n), actions] for table in (board.web, board.calls))
    return Rates(
        questions=n,
        answered=_share(actions == CORRECT, answerable),
        confidently_wrong=_share(actions == CORRECT, ~answerable),
        needless_web=_share(web, answerable),
        missed_web=_share(~web, ~answerable),
        ungraded=_share(board.ungraded, everything),
        discarded=_share(actions == INCORRECT, answerable),
        right=_share(accepted[board.expected, actions], everything),
        web=_share(web, everything),
        calls=float(calls.mean()) if n else 0.0,
        answerable=int(answerable.sum()),
    )


def confusion(board: Board, actions: Array) -> Array:
    """(4, 3) counts: places in `Expected`, places in `ACTIONS`."""
    counts = np.bincount(board.expected * len(ACTIONS) + actions, minlength=len(Expected) * len(ACTIONS))
    return counts.reshape(len(Expected), len(ACTIONS))


def _share(hits: Array, among: Array) -> Estimate | None:
    return proportion(int((hits & among).sum()), int(among.sum()))
