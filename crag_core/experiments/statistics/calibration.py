"""Calibration: scores to probabilities, fitted to questions with known outcome."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np

from crag_core.base.errors import BadRecord
from crag_core.base.text.numbers import readable
from crag_core.experiments.labelled.conditions import Conditions
from crag_core.experiments.statistics.curves import Array, Graded, Labels, Values, graded
from crag_core.experiments.statistics.isotonic import Knots, fit_isotonic, follow_isotonic
from crag_core.experiments.statistics.platt import fit_platt, follow_platt
from crag_core.experiments.statistics.reliability import brier

FEWEST = 10
"""Questions of either kind, below which nothing is fitted."""

FEWEST_ISOTONIC = 50
"""Questions of the rarer kind, below which steps follow the sample rather than the truth."""


class Kind(StrEnum):
    """PLATT: a logistic curve. ISOTONIC: the best curve that never falls, through knots."""

    PLATT = "platt"
    ISOTONIC = "isotonic"


@dataclass(frozen=True)
class Calibration:
    """A curve, and what it was fitted on; none of the two that `kind` does not need.

    `coefficients`: slope, not negative, and offset of the logistic curve. `points`: score and probability of every
    knot, neither ever falling. `corpus` is the fingerprint of the documents, `questions` how many were used, `created`
    a date.
    """

    kind: Kind
    evaluator: str
    evaluator_version: str
    corpus: str
    questions: int
    created: str
    coefficients: tuple[float, ...] = ()
    points: Knots = ()

    def __post_init__(self) -> None:
        is_platt = self.kind == Kind.PLATT
        if len(self.coefficients) != (2 if is_platt else 0) or bool(self.points) == is_platt:
            raise ValueError("expected a slope and an offset for platt, or points for isotonic, and not both")
        if is_platt and self.coefficients[0] < 0:
            raise ValueError(f"expected a slope that is not negative, found {self.coefficients[0]}")
        if any(before[0] >= after[0] or before[1] > after[1] for before, after in pairwise(self.points)):
            raise ValueError("expected points of rising scores and of probabilities that never fall")
        if any(not 0 <= probability <= 1 for _, probability in self.points):
            raise ValueError("expected points with probabilities in 0..1")

    def probability(self, score: float) -> float:
        """In 0..1, and never less for a higher score. ValueError: NaN, which no question was graded by."""
        if math.isnan(score):
            raise ValueError("expected a score, found NaN")
        is_platt = self.kind == Kind.PLATT
        return follow_platt(score, *self.coefficients) if is_platt else follow_isotonic(score, self.points)


@dataclass(frozen=True)
class Choice:
    """`reason` is a sentence with the numbers that decided."""

    kind: Kind
    reason: str


def calibrate(
    scores: Values, outcomes: Labels, kind: Kind, *, evaluator: str, evaluator_version: str, corpus: str, created: str
) -> Calibration:
    """Fit a curve of `kind`; BadRecord: scores outside 0..1, fewer than `FEWEST` outcomes of a kind."""
    found = _enough(scores, outcomes)
    return Calibration(
        kind,
        evaluator,
        evaluator_version,
        corpus,
        questions=len(found.scores),
        created=created,
        coefficients=fit_platt(found.scores, found.labels) if kind == Kind.PLATT else (),
        points=fit_isotonic(found.scores, found.labels) if kind == Kind.ISOTONIC else (),
    )


def calibrated(scores: Values, outcomes: Labels, made: Conditions, created: str) -> tuple[Calibration | None, str]:
    """The curve of the kind that fits better, for what was graded under `made`, and in words how it was fitted.

    None, and why, where the questions do not allow one.
    """
    try:
        chosen = choose(scores, outcomes)
        found = calibrate(
            scores, outcomes, chosen.kind, evaluator=made.evaluator, evaluator_version=made.evaluator_version,
            corpus=made.corpus, created=created,
        )  # fmt: skip
    except BadRecord as error:
        return None, f"No calibration goes with it: {error}"
    return found, f"A calibration of the score goes with it, by {chosen.kind.value}: {chosen.reason}."


def choose(scores: Values, outcomes: Labels, seed: int = 0) -> Choice:
    """The kind whose cross-validated Brier score is lower; `PLATT` on ties and with few questions."""
    rarer = _rarer(_enough(scores, outcomes))
    if rarer < FEWEST_ISOTONIC:
        return Choice(Kind.PLATT, f"{rarer} questions of the rarer kind; isotonic regression needs {FEWEST_ISOTONIC}")
    platt, isotonic = (brier(cross_validated(scores, outcomes, kind, seed=seed), outcomes) or 0.0 for kind in Kind)
    steps, curve = readable(isotonic, platt)
    kind, message = (Kind.ISOTONIC, "below") if isotonic < platt else (Kind.PLATT, "not below")
    return Choice(
        kind, f"cross-validated Brier score {steps} of isotonic regression is {message} {curve} of Platt's curve"
    )


def cross_validated(scores: Values, outcomes: Labels, kind: Kind, folds: int = 5, seed: int = 0) -> Array:
    """Of every question, in the order given, the probability by a curve fitted without its fold; NaN of a NaN.

    Folds are drawn with `seed`, and hold equal shares of both kinds. ValueError: folds outside 2 to the count of the
    rarer kind. BadRecord as in `calibrate`.
    """
    found = _enough(scores, outcomes)
    if not 2 <= folds <= _rarer(found):
        raise ValueError(f"expected 2 to {_rarer(found)} folds, found {folds}")
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(found.labels == label)) for label in (True, False)]
    fold = np.empty(len(found.labels), dtype=int)
    fold[np.concatenate(drawn)] = np.arange(len(fold)) % folds
    probabilities = np.empty(len(fold))
    for number in range(folds):
        held = fold == number
        follow = _fitted(kind, found.scores[~held], found.labels[~held])
        probabilities[held] = [follow(float(score)) for score in found.scores[held]]
    message = np.full(len(found.kept), np.nan)
    message[found.kept] = probabilities
    return message


def _fitted(kind: Kind, scores: Array, labels: Array) -> Callable[[float], float]:
    if kind == Kind.PLATT:
        slope, offset = fit_platt(scores, labels)
        return lambda score: follow_platt(score, slope, offset)
    knots = fit_isotonic(scores, labels)
    return lambda score: follow_isotonic(score, knots)


def _enough(scores: Values, outcomes: Labels) -> Graded:
    found = graded(scores, outcomes)
    outside = found.scores[(found.scores < 0) | (found.scores > 1)]
    if outside.size:
        raise BadRecord(
            f"Expected scores in 0..1, found {outside[0]}.", hint="Use the scores as the evaluator gave them."
        )
    right = int(found.labels.sum())
    wrong = len(found.labels) - right
    if min(right, wrong) < FEWEST:
        raise BadRecord(
            f"Expected {FEWEST} graded questions or more that come true and as many that do not, "
            f"found {right} and {wrong}.",
            hint="Label more questions of the rarer kind.",
        )
    return found


def _rarer(found: Graded) -> int:
    return int(min(found.labels.sum(), (~found.labels).sum()))
