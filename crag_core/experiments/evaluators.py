"""Calibrates an evaluator that somebody else trained, on a labelled set that it graded once.

Its logit becomes the chance that a question is answerable, by Platt's curve over the best chunk of each question: it
rises all the way, so that no order of chunks is lost. The thresholds are then chosen as for any evaluator, over that
chance, from the pair at which the usual costs break even.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crag_core.base import serialization
from crag_core.base.errors import BadRecord
from crag_core.base.text.display import against
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.decision.policy import Policy
from crag_core.experiments.labelled.graded import Case
from crag_core.experiments.statistics.calibration import FEWEST, Calibration, fit_platt
from crag_core.experiments.statistics.curves import Array, auroc, graded
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.thresholds.objective import Costs, Objective
from crag_core.experiments.thresholds.recommend import recommend
from crag_core.experiments.thresholds.threshold_board import Board

LOGIT = "logit"
"""The part of a grade that is calibrated."""


@dataclass(frozen=True)
class KeptEvaluator:
    """What is known of an evaluator `name` since it graded the set `labelled`, at its `revision`: a commit of the hub,
    or the digest of a folder.

    `lower` and `upper` are thresholds of the calibrated score, chosen as `reason` tells. `apart` is its AUROC,
    `seconds` what a chunk took. `remark` is what whoever uses it should know of its scores, "" for nothing.
    """

    name: str
    revision: str
    curve: Calibration
    lower: float
    upper: float
    labelled: str
    apart: Estimate
    seconds: float
    reason: str
    remark: str = ""

    def __post_init__(self) -> None:
        if not 0.0 <= self.lower <= self.upper <= 1.0:
            raise ValueError(f"expected 0 <= lower <= upper <= 1, found {self.lower} and {self.upper}")
        if not self.name or not self.revision:
            raise ValueError("expected the name of an evaluator and its revision")

    @property
    def version(self) -> str:
        """Of the scores that the curve makes."""
        return serialization.fingerprint({"kind": "platt", "coefficients": list(self.curve.coefficients)})[:12]


def break_even(costs: Costs) -> tuple[float, float]:
    """The thresholds of a calibrated score at which costs balance: above the upper one to answer from the documents
    costs less than a web search; below the lower one to discard them costs less than to take a question of another
    subject for one of theirs."""
    return round(costs.mixed_up / costs.missed, 2), round(1.0 - costs.web / costs.wrong, 2)


def calibrate(
    cases: Sequence[Case], policy: Policy, judge: EvaluatorCard, revision: str, labelled: str
) -> KeptEvaluator:
    """From questions that `judge` graded without one; raises `BadRecord` where they allow none."""
    answerable = np.array([case.asked.expected.is_answerable for case in cases], dtype=bool)
    best = np.array([_best(case) for case in cases])
    curve = _curve(best, answerable, judge)
    apart = auroc(best, answerable)
    assert apart is not None  # there are enough of both kinds
    lower, upper = break_even(Objective().costs)
    policy = policy.with_thresholds(lower, upper)
    board = Board(policy, [_calibrated(case, curve) for case in cases], judge)
    found = recommend(board, Objective())
    reason = (
        f"least cost on {found.chosen_on} questions, better on {found.judged_on} others than where costs break even"
    )
    if found.why_not or found.keep:
        others = f": {found.why_not}" if found.why_not else "; no other pair was better on held-out questions"
        reason = f"where the usual costs break even{others}"
    times = [one.seconds for case in cases for one in case.scored.grades or () if one.score is not None]
    return KeptEvaluator(
        name=judge.name,
        revision=revision,
        curve=curve,
        lower=min(found.lower, found.upper),
        upper=max(found.lower, found.upper),
        labelled=labelled,
        apart=apart,
        seconds=math.fsum(times) / len(times) if times else 0.0,
        reason=reason,
        remark=_out_of_reach(board, max(found.lower, found.upper)),
    )


def _out_of_reach(board: Board, upper: float) -> str:
    """Where no question reaches CORRECT: at which threshold the most of the answerable ones would, less of the others
    (Youden's J); "" where one does."""
    found = graded(board.deciding().upper, board.answerable)
    if found.scores.max() >= upper:
        return ""
    right, wrong = found.scores[found.labels], found.scores[~found.labels]
    at = max(found.scores, key=lambda cut: (right >= cut).mean() - (wrong >= cut).mean())
    highest, limit = against(float(found.scores.max()), upper)
    return (
        f"No question of the set reaches CORRECT: the highest score is {highest}, upper is {limit}. "
        f"With upper {math.floor(at * 100) / 100:.2f}, {(right >= at).sum()} of the {right.size} that the documents "
        f"answer would, and {(wrong >= at).sum()} of the {wrong.size} others."
    )


def _curve(best: Array, answerable: Array, judge: EvaluatorCard) -> Calibration:
    found = graded(best, answerable)
    right, wrong = int(found.labels.sum()), int((~found.labels).sum())
    if min(right, wrong) < FEWEST:
        raise BadRecord(
            f"A calibration needs {FEWEST} graded questions or more that the documents answer and as many that they do "
            f"not, found {right} and {wrong}.",
            hint="Use a larger labelled set.",
        )
    parting = auroc(found.scores, found.labels)
    rises = parting is not None and parting.value > 0.5  # without it a slope may be other than 0 by rounding
    coefficients = fit_platt(found.scores, found.labels) if rises else (0.0, 0.0)
    if coefficients[0] <= 0.0:
        raise BadRecord(
            f"{judge.name} cannot be calibrated on these {len(found.labels)} questions: expected higher scores where "
            f"the documents answer, found AUROC {parting}.",
            hint="It is no evaluator for such documents.",
        )
    return Calibration(len(found.labels), coefficients)


def _best(case: Case) -> float:
    """NaN where nothing was graded."""
    return max((one for grade in case.scored.grades or () if (one := _logit(grade)) is not None), default=math.nan)


def _logit(grade: Grade) -> float | None:
    return dict(grade.parts).get(LOGIT) if grade.score is not None else None


def _calibrated(case: Case, curve: Calibration) -> Case:
    grades = tuple(
        grade if (logit := _logit(grade)) is None else replace(grade, score=curve.probability(logit))
        for grade in case.scored.grades or ()
    )
    return replace(case, scored=replace(case.scored, grades=grades))
