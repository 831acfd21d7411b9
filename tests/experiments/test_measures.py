"""What a question adds to every measure, by hand; and which questions have no part in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Usage
from crag_core.base.types.web import WebOutcome
from crag_core.experiments.comparison.metrics import MEASURES, Counts, Measure
from crag_core.experiments.comparison.outcome import Evidence, Outcome
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from tests.fakes import QUESTION

CORRECT, AMBIGUOUS, INCORRECT, UNANSWERABLE = Expected
NOT_ANSWERED = (AMBIGUOUS, INCORRECT, UNANSWERABLE)
BY_NAME = {measure.name: measure for measure in MEASURES}

MIXED = Evidence((0, 2, 1, 2), 200, 50)
"""Four documents of which the second and the fourth answer; a quarter of the text is irrelevant."""

FULL = Outcome(
    key="",
    run_id="run-1",
    action=Action.AMBIGUOUS,
    before=MIXED,
    after=Evidence((2,), 40, 0),
    score_before=0.5,
    score_after=0.75,
    is_answered=True,
    contains=1.0,
    sentences=4,
    grounded=3,
    ungrounded=1,
    web="used",
    seconds=8.0,
    usage=Usage(3, 100, 20),
)


def counts(name: str, expected: Expected = CORRECT, **changes: Any) -> Counts | None:
    return BY_NAME[name].counts(LabelledQuestion(QUESTION, expected), replace(FULL, **changes))


# --- all of them ----------------------------------------------------------------------------------------------------

BY_HAND: dict[str, tuple[float, float]] = {
    "right": (0.0, 1.0),
    "right_correct": (0.0, 1.0),
    "hit_before": (1.0, 1.0),
    "hit_after": (1.0, 1.0),
    "mrr_before": (0.5, 1.0),
    "mrr_after": (1.0, 1.0),
    "irrelevant_before": (50.0, 200.0),
    "irrelevant_after": (0.0, 40.0),
    "contains": (1.0, 1.0),
    "grounded": (3.0, 4.0),
    "abstained_answerable": (0.0, 1.0),
    "corrected": (1.0, 1.0),
    "improved": (1.0, 1.0),
    "gain": (0.25, 1.0),
    "web": (1.0, 1.0),
    "needless_web": (1.0, 1.0),
    "seconds": (8.0, 1.0),
    "calls": (3.0, 1.0),
    "tokens": (120.0, 1.0),
}
"""Of FULL, where it was expected to be answered; every other measure leaves it out."""


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_every_measure_of_an_answerable_question_by_hand(measure: Measure) -> None:
    found, expected = measure.counts(LabelledQuestion(QUESTION, CORRECT), FULL), BY_HAND.get(measure.name)
    assert found == (expected if expected is None else pytest.approx(expected))


EVERYWHERE = ("right", "grounded", "corrected", "improved", "gain", "web", "seconds", "calls", "tokens")


@pytest.mark.parametrize("expected", NOT_ANSWERED)
@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_what_cannot_be_answered_takes_part_in_few_measures(measure: Measure, expected: Expected) -> None:
    found = measure.counts(LabelledQuestion(QUESTION, expected), FULL)
    if measure.name in EVERYWHERE and measure.name != "right":
        assert found == pytest.approx(BY_HAND[measure.name])
    elif measure.name == "right" or measure.name == f"right_{expected.value.lower()}":
        assert found == (float(expected is not INCORRECT), 1.0), "AMBIGUOUS is right but for something else"
    elif measure.name == "answered_unanswerable":
        assert found == (0.0, 1.0), "what the documents do not say, and is right all the same"
    elif measure.name == "answered_elsewhere":
        assert found == (1.0, 1.0)
    else:
        assert found is None


# --- routing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "right"),
    [
        (CORRECT, {Action.CORRECT}),
        (AMBIGUOUS, {Action.AMBIGUOUS}),
        (INCORRECT, {Action.INCORRECT}),
        (UNANSWERABLE, {Action.AMBIGUOUS, Action.INCORRECT}),
    ],
)
@pytest.mark.parametrize("action", Action)
def test_a_route_is_right_where_the_label_says_so(expected: Expected, right: set[Action], action: Action) -> None:
    wanted = (float(action in right), 1.0)
    assert counts("right", expected, action=action) == wanted
    for other in Expected:
        found = counts(f"right_{other.value.lower()}", expected, action=action)
        assert found == (wanted if other is expected else None)


# --- retrieval ------------------------------------------------------------------------------------------------------

RANKED = [name for name in BY_HAND if name.endswith("_after") and name != "irrelevant_after"]


@pytest.mark.parametrize("name", [*RANKED, "irrelevant_after"])
@pytest.mark.parametrize("after", [None, Evidence(None, 0, 0)])
def test_evidence_that_nobody_can_judge_has_no_part(name: str, after: Evidence | None) -> None:
    assert counts(name, after=after) is None


def test_an_empty_context_is_not_free_of_what_is_irrelevant() -> None:
    assert counts("irrelevant_after", after=Evidence((), 0, 0)) is None
    assert counts("irrelevant_after", after=Evidence((0,), 30, 30)) == (30.0, 30.0)


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contains", [None, 0.0])
@pytest.mark.parametrize("is_answered", [True, False])
def test_an_answer_is_right_where_there_is_one_to_give(is_answered: bool, contains: float | None) -> None:
    assert counts("abstained_answerable", is_answered=is_answered) == (float(not is_answered), 1.0)
    assert counts("answered_unanswerable", is_answered=is_answered) is None
    for expected in NOT_ANSWERED:
        assert counts("abstained_answerable", expected, is_answered=is_answered) is None
        found = counts("answered_unanswerable", expected, is_answered=is_answered, contains=contains)
        assert found == (float(is_answered), 1.0)


# --- correction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["improved", "gain"])
@pytest.mark.parametrize("changes", [{"action": Action.CORRECT}, {"score_before": None}, {"score_after": None}])
def test_only_graded_corrections_can_improve(name: str, changes: dict[str, Any]) -> None:
    assert counts(name, **changes) is None


@pytest.mark.parametrize(("after", "improved", "gain"), [(0.75, 1.0, 0.25), (0.5, 0.0, 0.0), (0.25, 0.0, -0.25)])
def test_a_correction_improves_where_the_best_score_rises(after: float, improved: float, gain: float) -> None:
    assert counts("improved", score_after=after) == (improved, 1.0)
    assert counts("gain", score_after=after) == (gain, 1.0)
    assert counts("gain", score_before=0.0, score_after=0.0) == (0.0, 1.0), "0 is a score"


@pytest.mark.parametrize("outcome", [*(one.value for one in WebOutcome), ""])
def test_the_web_counts_where_it_answered(outcome: str) -> None:
    answered = (float(outcome in ("used", "empty")), 1.0)
    assert counts("web", web=outcome) == counts("needless_web", web=outcome) == answered
    assert counts("web", INCORRECT, web=outcome) == answered
    assert counts("needless_web", INCORRECT, web=outcome) is None
