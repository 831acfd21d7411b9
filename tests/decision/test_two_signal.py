"""Two signals, each against its own threshold: what is compared, what is said, and when one number is left."""

import json
from dataclasses import replace

import pytest

from crag_core.base.types.decisions import Action, CorrectionKind, Decision
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.decision.decide import decide, set_aside
from crag_core.decision.policy import Policy
from crag_core.decision.reasons import Terms, reason_in
from crag_core.trace.trace import Trace
from tests.builders import even, passages, policy, trace, twice

CORRECT, AMBIGUOUS, INCORRECT = Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT
TWO = policy("two-signal")  # lower 0.40, upper 0.60
Given = tuple[float, float] | float | None


def decided(*signals: Given, of: Policy = TWO) -> Decision:
    return decide(of, *twice(*signals))


@pytest.mark.parametrize(
    ("signals", "action", "numbers", "deciding"),
    [
        ([(0.5, 0.5), (0.5, 0.6), (0.4, 0.6)], AMBIGUOUS, (0.5, 0.6), "p1 p2"),  # ties go to the rank
        # an ungraded passage does not count here; a grade without parts counts for both
        ([None, (0.31, 0.82)], AMBIGUOUS, (0.31, 0.82), "p2"),
        ([0.65, (0.31, 0.82)], CORRECT, (0.65, 0.82), "p1"),
        # no parts at all: one number, as in paper
        ([0.7, 0.1], CORRECT, (0.7, None), "p1"),
        ([None, 0.3], INCORRECT, (0.3, None), "p2"),
    ],
)
def test_answering_is_compared_with_upper_and_topical_with_lower(
    signals: list[Given], action: Action, numbers: tuple[float | None, float | None], deciding: str
) -> None:
    decision = decided(*signals)
    assert decision.action is action
    assert (decision.score, decision.topical) == numbers
    assert " ".join(decision.deciding) == deciding


def test_with_one_score_a_lower_above_upper_decides_nothing_and_the_reason_says_so() -> None:
    crossed = TWO.with_thresholds(0.8, 0.3)
    told = "with one score, lower 0.80 above upper decides nothing"
    assert decided(0.5, of=crossed).reason == f"best chunk 0.50 ≥ upper 0.30; {told}"
    assert decided(0.3, of=crossed).reason == f"best chunk 0.30 ≥ upper 0.30; {told}"
    assert decided(0.2, of=crossed).reason == f"best chunk 0.20 < upper 0.30; {told}"
    for score in (0.1, 0.3, 0.5, 0.9):
        assert decided(score, of=crossed).action is decided(score, of=TWO.with_thresholds(0.3, 0.3)).action


@pytest.mark.parametrize(
    ("signals", "reason"),
    [
        ((0.31, 0.82), "best answering 0.31 < upper 0.60, best topical 0.82 ≥ lower 0.40"),
        ((0.31, 0.4), "best answering 0.31 < upper 0.60, best topical 0.40 ≥ lower 0.40"),
        ((0.31, 0.3), "best answering 0.31 < upper 0.60, best topical 0.30 < lower 0.40"),
        ((0.7, 0.8), "best answering 0.70 ≥ upper 0.60"),
        ((0.6, 0.8), "best answering 0.60 ≥ upper 0.60"),
        ((0.7, 0.2), "best answering 0.70 ≥ upper 0.60, although best topical 0.20 < lower 0.40"),
        ((0.5999, 0.39999), "best answering 0.5999 < upper 0.6000, best topical 0.39999 < lower 0.40000"),
        (0.5, "best chunk 0.50 between lower 0.40 and upper 0.60"),
        (None, "no chunk could be graded"),
    ],
)
def test_reasons_are_said_in_both_numbers(signals: Given, reason: str) -> None:
    assert decided(signals).reason == reason


def test_a_part_beyond_the_scale_counts_as_its_end() -> None:
    found = decide(TWO, passages(1), (Grade("p1", 0.5, parts=((ANSWERING, 7.0), (TOPICAL, -3.0))),))
    assert (found.action, found.score, found.topical) == (CORRECT, 1.0, 0.0)


def recorded(*signals: Given, of: Policy = TWO) -> Trace:
    found, grades = twice(*signals)
    return trace(of, passages=found, grades=grades, decision=decide(of, found, grades))


def test_a_run_recorded_before_there_were_two_signals_is_read() -> None:
    data = json.loads(recorded(0.5, of=policy("paper")).to_json())
    del data["decision"]["topical"]
    assert Trace.from_dict(data) == recorded(0.5, of=policy("paper"))


def on_scales(*signals: tuple[tuple[float, float], bool | None]) -> tuple[tuple[Passage, ...], tuple[Grade, ...]]:
    """As `twice`; True: on the coarse scale, False: on the fine one."""
    found, grades = twice(*(one for one, _ in signals))
    return found, tuple(replace(given, coarse=coarse) for given, (_, coarse) in zip(grades, signals, strict=True))


@pytest.mark.parametrize(
    ("signals", "action", "deciding", "aside"),
    [
        ([((0.3, 0.5), False), ((0.9, 1.0), True)], AMBIGUOUS, "p1", "p2"),
        ([((0.1, 0.2), False), ((0.9, 1.0), True), ((0.9, 1.0), True)], INCORRECT, "p1", ""),  # all are discarded
        ([((0.7, 0.9), False), ((0.1, 0.1), True)], CORRECT, "p1", "p2"),
        ([((0.9, 1.0), True), ((0.3, 0.5), True)], CORRECT, "p1", ""),  # alone they decide
        ([((1.0, 1.0), None), ((0.9, 1.0), True)], CORRECT, "p1", ""),  # a pinned one is on neither scale
        ([((0.3, 0.5), None), ((0.9, 1.0), None)], CORRECT, "p2", ""),  # of a run before there were marks
    ],
)
def test_a_coarse_grade_has_no_part_in_a_decision_beside_a_finer_one(
    signals: list[tuple[tuple[float, float], bool | None]], action: Action, deciding: str, aside: str
) -> None:
    found, grades = on_scales(*signals)
    decision = decide(TWO, found, grades)
    assert (decision.action, " ".join(decision.deciding)) == (action, deciding)
    discarded = [one for one in decision.plan if one.kind is CorrectionKind.DISCARD and one.passage_id]
    assert " ".join(str(one.passage_id) for one in discarded) == aside
    count = len(set_aside(TWO, found, grades))
    assert decision.reason.endswith(f"{count} chunk{'s' * (count > 1)} with a coarse grade set aside") is bool(count)


def test_the_reason_says_what_weakens_the_grades_that_decide() -> None:
    found, grades = twice((0.3, 0.5), (0.1, 0.9), (0.0, 0.0))
    cautious = tuple(replace(one, caution=f"less sure in {one.passage_id}") for one in grades)
    assert decide(TWO, found, cautious).reason.endswith("; less sure in p1; less sure in p2")
    same = tuple(replace(one, caution="less sure") for one in grades)
    assert decide(TWO, found, same).reason.endswith("; less sure")
    assert "less sure" not in decide(policy("heuristic"), found, same, even(0.9)).reason


def test_the_reason_is_told_in_the_terms_of_its_reader() -> None:
    terms = Terms("answer", "subject", "bar", "limit")
    told = "best answer 0.70 ≥ bar 0.60, although best subject 0.20 < limit 0.40"
    assert reason_in(terms, TWO, decided((0.7, 0.2))) == told
    assert reason_in(terms, TWO, decided((0.3, 0.2))) == "best answer 0.30 < bar 0.60, best subject 0.20 < limit 0.40"
    assert reason_in(terms, TWO, decided(0.5)) == decided(0.5).reason


def test_the_reason_tells_of_scores_that_agree() -> None:
    told = decided((0.55, 0.9), (0.55, 0.1), of=replace(TWO, low_variance_promotes=True)).reason
    assert told == "best answering 0.55 > 0.50 and the scores agree (variance 0.00)"
