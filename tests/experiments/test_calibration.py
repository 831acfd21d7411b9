"""Curves from scores to probabilities: chosen, fitted without a fold, refused, and kept as records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain, to_plain
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.statistics.calibration import (
    Calibration,
    Kind,
    Knots,
    brier,
    calibrated,
    choose,
    cross_validated,
    ece,
    fit,
    fit_platt,
)
from crag_core.experiments.statistics.curves import graded

Sample = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
NAN = float("nan")
BOTH = st.lists(st.tuples(st.integers(0, 20).map(lambda score: score / 20), st.booleans()), max_size=40).map(
    lambda pairs: [*pairs, *[(0.3, False), (0.6, True)] * 10]
)


def draw(seed: int, count: int = 200, decimals: int = 9) -> Sample:
    """Of which an answer becomes likely above a score of one half, less steeply than by the score itself."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random(count), decimals)
    return scores, rng.random(count) < 0.2 + 0.6 * (scores > 0.5)


def made(kind: Kind, curve: Any, questions: int = 20) -> Calibration:
    return Calibration(kind, "trained", "2", "c0ffee", questions, "2026-01-31", *curve)


def kept(kind: Kind, scores: Any, outcomes: Any) -> Calibration:
    found = graded(scores, outcomes)
    return made(kind, fit(kind, found.scores, found.labels), len(found.scores))


def on_platt(score: float, slope: float, offset: float) -> float:
    return made(Kind.PLATT, ((slope, offset),)).probability(score)


def on_isotonic(score: float, knots: Knots) -> float:
    return made(Kind.ISOTONIC, ((), knots)).probability(score)


def across(scores: Any, outcomes: Any, kind: Kind) -> Any:
    return cross_validated(graded(scores, outcomes), kind)


# --- whatever the sample --------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(BOTH, st.lists(st.floats(-1, 2), min_size=2, max_size=20))
def test_a_higher_score_never_has_a_lower_probability(pairs: list[tuple[float, bool]], places: list[float]) -> None:
    scores, outcomes = [score for score, _ in pairs], [label for _, label in pairs]
    for kind in Kind:
        told = kept(kind, scores, outcomes)
        line = np.array([told.probability(place) for place in sorted([*places, *scores])])
        assert (np.diff(line) >= -1e-12).all() and (line >= 0).all() and (line <= 1).all()


# --- cross-validation and choice ------------------------------------------------------------------------------------


def test_every_question_is_told_by_the_curve_of_all_other_folds() -> None:
    scores, outcomes = draw(0, 200)
    told, left = across(scores, outcomes, Kind.PLATT), set(range(200))
    while left:
        one = left.pop()
        moved = scores.copy()
        moved[one] = 1 - moved[one]  # which changes every curve but that of its own fold
        fold = told == across(moved, outcomes, Kind.PLATT)
        fold[one] = True
        assert fold.sum() == 40 and abs(outcomes[fold].sum() - outcomes.sum() / 5) < 1
        curve = fit_platt(scores[~fold], outcomes[~fold])
        assert told[fold] == pytest.approx([on_platt(float(score), *curve) for score in scores[fold]], abs=1e-12)
        left -= set(np.flatnonzero(fold).tolist())


def test_pure_noise_has_no_skill_out_of_its_fold() -> None:
    rng = np.random.default_rng(0)
    scores, outcomes = rng.random(400), rng.random(400) < 0.5
    inside = brier([kept(Kind.ISOTONIC, scores, outcomes).probability(score) for score in scores], outcomes)
    outside = brier(across(scores, outcomes, Kind.ISOTONIC), outcomes)
    assert inside < 0.248 < 0.252 < outside


def test_folds_hold_equal_shares_of_both_kinds() -> None:
    scores = np.repeat([0.2, 0.8], [40, 10])  # every curve is known from its two shares
    told = across(scores, scores > 0.5, Kind.PLATT)
    assert told == pytest.approx(np.repeat([1 / 34, 9 / 10], [40, 10]), abs=1e-9)


def test_steps_are_chosen_where_the_truth_has_steps() -> None:
    scores = np.random.default_rng(0).random(600)
    outcomes = np.random.default_rng(1).random(600) < np.where(scores > 0.9, 0.95, 0.4)
    kind, reason = choose(graded(scores, outcomes))
    assert kind is Kind.ISOTONIC
    steps, curve = (brier(across(scores, outcomes, kind), outcomes) for kind in (Kind.ISOTONIC, Kind.PLATT))
    assert (
        reason
        == f"cross-validated Brier score {steps:.2f} of isotonic regression is below {curve:.2f} of Platt's curve"
    )


def test_a_smooth_curve_is_chosen_where_the_truth_is_smooth() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(300)
    kind, reason = choose(graded(scores, rng.random(300) < 1 / (1 + np.exp(3 - 6 * scores))))
    assert kind is Kind.PLATT and "is not below" in reason


def test_platt_on_a_tie() -> None:
    kind, reason = choose(graded([0.5] * 100, [True, False] * 50))
    assert kind is Kind.PLATT and reason.endswith("0.25 of isotonic regression is not below 0.25 of Platt's curve")


def test_few_questions_have_no_choice() -> None:
    scores = np.linspace(0, 1, 500)
    assert choose(graded(scores, scores >= scores[-49])) == (
        Kind.PLATT,
        "49 questions of the rarer kind; isotonic regression needs 50",
    )
    assert "Brier" in choose(graded(scores, scores >= scores[-50]))[1]


def test_calibration_mends_scores_that_claim_too_much() -> None:
    rng = np.random.default_rng(5)
    truth = rng.random(600)
    outcomes, scores = rng.random(600) < truth, 0.8 + 0.2 * truth
    for kind in Kind:
        before, after = ece(scores, outcomes), ece(across(scores, outcomes, kind), outcomes)
        assert before is not None and after is not None and after < 0.08 < 0.3 < before


# --- too little, and wrong ------------------------------------------------------------------------------------------


CONDITIONS = Conditions("trained", "2", "", "", "embedding", 6, "c0ffee")


@pytest.mark.parametrize(
    ("right", "wrong", "found"), [(0, 0, "0 and 0"), (40, 0, "40 and 0"), (0, 40, "0 and 40"), (9, 40, "9 and 40")]
)
def test_too_few_of_a_kind_are_refused(right: int, wrong: int, found: str) -> None:
    curve, why = calibrated([0.5] * (right + wrong), [True] * right + [False] * wrong, CONDITIONS, "today")
    assert curve is None and "Expected 10 graded questions or more" in why and f"found {found}. Label more" in why


def test_what_was_never_graded_counts_for_nothing() -> None:
    curve, why = calibrated([NAN, *[0.5] * 19], [True] * 10 + [False] * 10, CONDITIONS, "today")
    assert curve is None and "found 9 and 10" in why
    scores, outcomes = [NAN, *np.linspace(0, 1, 60), NAN], [True, *[False, True] * 30, False]
    found = calibrated(scores, outcomes, CONDITIONS, "today")
    assert found == calibrated(scores[1:-1], outcomes[1:-1], CONDITIONS, "today") and found[0] is not None


@pytest.mark.parametrize("wrong", [-0.5, 7.3, math.inf])
def test_scores_of_another_scale_are_refused(wrong: float) -> None:
    curve, why = calibrated([0.5] * 39 + [wrong], [True, False] * 20, CONDITIONS, "today")
    assert curve is None and f"Expected scores in 0..1, found {wrong}" in why


@pytest.mark.parametrize("kind", Kind)
def test_no_score_has_no_probability(kind: Kind) -> None:
    with pytest.raises(ValueError, match="expected a score, found NaN"):
        kept(kind, *draw(0)).probability(NAN)


# --- as a record ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", Kind)
def test_a_calibration_survives_being_kept(kind: Kind) -> None:
    told = kept(kind, [*draw(0)[0], NAN], [*draw(0)[1], True])
    assert told.questions == 200 and told.created == "2026-01-31"
    assert from_plain(Calibration, to_plain(told)) == told


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": "platt"}, "slope and an offset"),
        ({"kind": "platt", "coefficients": [1.0]}, "slope and an offset"),
        ({"kind": "platt", "coefficients": [1.0, 0.0], "points": [[0.0, 0.0]]}, "not both"),
        ({"kind": "platt", "coefficients": [-1.0, 0.0]}, "not negative, found -1.0"),
        ({"kind": "isotonic"}, "or points for isotonic"),
        ({"kind": "isotonic", "points": [[0.0, 0.0]], "coefficients": [1.0, 0.0]}, "not both"),
        ({"kind": "isotonic", "points": [[0.5, 0.1], [0.4, 0.2]]}, "rising scores"),
        ({"kind": "isotonic", "points": [[0.5, 0.1], [0.5, 0.2]]}, "rising scores"),
        ({"kind": "isotonic", "points": [[0.4, 0.2], [0.5, 0.1]]}, "never fall"),
        ({"kind": "isotonic", "points": [[0.4, 0.2], [0.5, 1.1]]}, r"in 0\.\.1"),
        ({"kind": "beta", "coefficients": [1.0, 0.0]}, "expected 'platt' or 'isotonic'"),
    ],
)
def test_a_kept_calibration_that_cannot_be_is_refused(fields: dict[str, Any], problem: str) -> None:
    common = {"evaluator": "e", "evaluator_version": "1", "corpus": "c", "questions": 20, "created": "today"}
    with pytest.raises(BadRecord, match=problem):
        from_plain(Calibration, common | fields)
