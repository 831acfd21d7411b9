"""Two signals, each against its own threshold: what is compared, what is said, and when one number is left."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.base.types.decisions import Action, CorrectionKind, Decision
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Round
from crag_core.decision.decide import decide, set_aside
from crag_core.decision.policy import Policy
from crag_core.decision.rounds import replay_rounds
from crag_core.decision.stability import Interval, flips, stability
from crag_core.decision.steps import WAYS
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from tests.builders import even, graded, kinds, passage, passages, policy, round_of, trace, twice

CORRECT, AMBIGUOUS, INCORRECT = Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT
TWO = policy("two-signal")  # lower 0.40, upper 0.60
Given = tuple[float, float] | float | None


def decided(*signals: Given, of: Policy = TWO) -> Decision:
    return decide(of, *twice(*signals))


@pytest.mark.parametrize(
    ("signals", "action", "numbers", "deciding"),
    [
        ([(0.7, 0.9)], CORRECT, (0.7, 0.9), "p1"),
        ([(0.1, 0.9), (0.7, 0.5)], CORRECT, (0.7, 0.9), "p2"),
        ([(0.31, 0.82), (0.1, 0.2)], AMBIGUOUS, (0.31, 0.82), "p1"),
        ([(0.31, 0.5), (0.1, 0.82)], AMBIGUOUS, (0.31, 0.82), "p1 p2"),
        ([(0.1, 0.82), (0.31, 0.5)], AMBIGUOUS, (0.31, 0.82), "p2 p1"),
        ([(0.2, 0.3), (0.1, 0.35)], INCORRECT, (0.2, 0.35), "p1 p2"),
        # at the thresholds, and a ten-thousandth beside them
        ([(0.6, 0.9)], CORRECT, (0.6, 0.9), "p1"),
        ([(0.5999, 0.9)], AMBIGUOUS, (0.5999, 0.9), "p1"),
        ([(0.1, 0.4)], AMBIGUOUS, (0.1, 0.4), "p1"),
        ([(0.1, 0.3999)], INCORRECT, (0.1, 0.3999), "p1"),
        # the two contradict each other: the answer counts
        ([(0.9, 0.1)], CORRECT, (0.9, 0.1), "p1"),
        ([(0.0, 1.0)], AMBIGUOUS, (0.0, 1.0), "p1"),
        # ties go to the rank
        ([(0.5, 0.5), (0.5, 0.5)], AMBIGUOUS, (0.5, 0.5), "p1"),
        ([(0.5, 0.5), (0.5, 0.6), (0.4, 0.6)], AMBIGUOUS, (0.5, 0.6), "p1 p2"),
        # an ungraded passage does not count here; a grade without parts counts for both
        ([None, (0.31, 0.82)], AMBIGUOUS, (0.31, 0.82), "p2"),
        ([0.65, (0.31, 0.82)], CORRECT, (0.65, 0.82), "p1"),
        ([0.5, (0.31, 0.45)], AMBIGUOUS, (0.5, 0.5), "p1"),
        # no parts at all: one number, as in paper
        ([0.7, 0.1], CORRECT, (0.7, None), "p1"),
        ([0.5, 0.1], AMBIGUOUS, (0.5, None), "p1"),
        ([0.3, 0.1], INCORRECT, (0.3, None), "p1"),
        ([None, 0.3], INCORRECT, (0.3, None), "p2"),
        ([None, None], AMBIGUOUS, (None, None), ""),
        ([], INCORRECT, (None, None), ""),
    ],
)
def test_answering_is_compared_with_upper_and_topical_with_lower(
    signals: list[Given], action: Action, numbers: tuple[float | None, float | None], deciding: str
) -> None:
    decision = decided(*signals)
    assert decision.action is action
    assert (decision.score, decision.topical) == numbers
    assert " ".join(decision.deciding) == deciding


@pytest.mark.parametrize(
    ("lower", "upper", "signals", "action"),
    [
        (0.0, 0.0, (0.0, 0.0), CORRECT),
        (0.0, 1.0, (0.9999, 0.0), AMBIGUOUS),
        (0.0, 1.0, (1.0, 0.0), CORRECT),
        (1.0, 1.0, (0.9999, 1.0), AMBIGUOUS),
        (1.0, 1.0, (0.9999, 0.9999), INCORRECT),
        (0.5, 0.5, (0.4, 0.6), AMBIGUOUS),  # with one number there would be nothing between
        (0.5, 0.5, (0.4, 0.4), INCORRECT),
    ],
)
def test_thresholds_may_lie_at_the_ends_or_on_each_other(
    lower: float, upper: float, signals: tuple[float, float], action: Action
) -> None:
    assert decided(signals, of=TWO.with_thresholds(lower, upper)).action is action


@pytest.mark.parametrize(
    ("signals", "action"),
    [
        ((0.31, 0.9), CORRECT),
        ((0.2, 0.9), AMBIGUOUS),
        ((0.2, 0.7), INCORRECT),
        ((0.5, 0.1), CORRECT),
        (0.5, CORRECT),
        (0.2, INCORRECT),
    ],
)
def test_lower_may_lie_above_upper(signals: Given, action: Action) -> None:
    assert decided(signals, of=TWO.with_thresholds(0.8, 0.3)).action is action


def test_with_one_score_a_lower_above_upper_decides_nothing_and_the_reason_says_so() -> None:
    crossed = TWO.with_thresholds(0.8, 0.3)
    told = "with one score, lower 0.80 above upper decides nothing"
    assert decided(0.5, of=crossed).reason == f"best chunk 0.50 ≥ upper 0.30; {told}"
    assert decided(0.3, of=crossed).reason == f"best chunk 0.30 ≥ upper 0.30; {told}"
    assert decided(0.2, of=crossed).reason == f"best chunk 0.20 < upper 0.30; {told}"
    for score in (0.1, 0.3, 0.5, 0.9):
        assert decided(score, of=crossed).action is decided(score, of=TWO.with_thresholds(0.3, 0.3)).action


@given(*4 * [st.floats(0, 1, allow_subnormal=False)])
def test_a_doubtful_decision_can_always_be_changed_by_either_threshold(
    answering: float, topical: float, lower: float, upper: float
) -> None:
    of = TWO.with_thresholds(lower, upper)
    stable = stability(of, *twice((answering, topical)), (), ())
    if decided((answering, topical), of=of).action is AMBIGUOUS:
        assert (stable.upper.below, stable.upper.low) == (CORRECT, answering)
        assert topical == 1.0 or (stable.lower.above, stable.lower.high) == (INCORRECT, topical)


def test_the_ends_of_each_threshold_are_options_here_too() -> None:
    strict = replace(TWO, at_upper=AMBIGUOUS, at_lower=INCORRECT)
    assert decided((0.6, 0.9), of=strict).reason == ("best answering 0.60 ≤ upper 0.60, best topical 0.90 > lower 0.40")
    assert decided((0.1, 0.4), of=strict).reason == ("best answering 0.10 ≤ upper 0.60, best topical 0.40 ≤ lower 0.40")
    assert decided((0.1, 0.4), of=strict).action is INCORRECT


@pytest.mark.parametrize(
    ("signals", "reason"),
    [
        ((0.31, 0.82), "best answering 0.31 < upper 0.60, best topical 0.82 ≥ lower 0.40"),
        ((0.31, 0.4), "best answering 0.31 < upper 0.60, best topical 0.40 ≥ lower 0.40"),
        ((0.31, 0.3), "best answering 0.31 < upper 0.60, best topical 0.30 < lower 0.40"),
        ((0.7, 0.8), "best answering 0.70 ≥ upper 0.60"),
        ((0.6, 0.8), "best answering 0.60 ≥ upper 0.60"),
        (
            (0.7, 0.2),
            "best answering 0.70 ≥ upper 0.60, although best topical 0.20 < lower 0.40",
        ),
        (
            (0.5999, 0.39999),
            "best answering 0.5999 < upper 0.6000, best topical 0.39999 < lower 0.40000",
        ),
        (0.5, "best chunk 0.50 between lower 0.40 and upper 0.60"),
        (None, "no chunk could be graded"),
    ],
)
def test_reasons_are_said_in_both_numbers(signals: Given, reason: str) -> None:
    assert decided(signals).reason == reason


@pytest.mark.parametrize(
    ("signals", "confidence"),
    [((0.7, 0.2), 0.7), ((0.31, 0.82), 0.82), ((0.05, 0.25), 0.75), (0.5, 0.5), (0.25, 0.75), (None, None)],
)
def test_confidence_is_that_of_the_signal_that_made_the_action(signals: Given, confidence: float | None) -> None:
    assert decided(signals).confidence == confidence


def test_an_ungraded_passage_may_count_for_both_signals() -> None:
    half = replace(TWO, ungraded=0.5)
    decision = decided(None, (0.1, 0.2), of=half)
    assert (decision.action, decision.score, decision.topical) == (AMBIGUOUS, 0.5, 0.5)
    assert decided(None, 0.1, of=half).topical is None
    assert decided(None, None, of=half).reason == "no chunk could be graded"


def test_parts_of_an_ungraded_passage_do_not_count() -> None:
    odd = Grade("p1", None, parts=((ANSWERING, 0.9), (TOPICAL, 0.9)), cause="broke off")
    assert decide(TWO, passages(1), (odd,)).reason == "no chunk could be graded"
    assert odd.two_signals is None


def test_of_a_part_that_is_missing_the_score_takes_the_place() -> None:
    lone = Grade("p1", 0.5, parts=((TOPICAL, 0.9),))
    assert lone.two_signals == (0.5, 0.9)
    decision = decide(TWO, passages(1), (lone,))
    assert (decision.action, decision.score, decision.topical) == (AMBIGUOUS, 0.5, 0.9)


def test_parts_of_other_names_are_none_of_the_two() -> None:
    cosine = Grade("p1", 0.5, parts=(("cosine", 0.9),))
    assert cosine.two_signals is None
    assert decide(TWO, passages(1), (cosine,)).topical is None


def test_a_part_beyond_the_scale_counts_as_its_end() -> None:
    found = decide(TWO, passages(1), (Grade("p1", 0.5, parts=((ANSWERING, 7.0), (TOPICAL, -3.0))),))
    assert (found.action, found.score, found.topical) == (CORRECT, 1.0, 0.0)


def test_only_the_judged_passages_count() -> None:
    first = replace(TWO, top=1)
    assert decided((0.1, 0.2), (0.9, 0.9), of=first).action is INCORRECT
    assert decided(0.5, (0.9, 0.9), of=first).topical is None, "what is not judged does not tell two signals apart"


def test_the_action_does_what_it_does_in_paper() -> None:
    refine, web = CorrectionKind.REFINE, (CorrectionKind.REWRITE, CorrectionKind.WEB_SEARCH)
    assert kinds(decided((0.7, 0.1))) == (refine, CorrectionKind.GENERATE)
    assert kinds(decided((0.1, 0.7))) == (refine, *web, CorrectionKind.GENERATE)
    assert kinds(decided((0.1, 0.1))) == (CorrectionKind.DISCARD, *web, CorrectionKind.GENERATE)


def test_a_chunk_is_dropped_by_its_answering_score() -> None:
    dropping = replace(TWO, ambiguous=(*TWO.ambiguous, ("drop", 0.2)))
    plan = decided((0.2, 0.5), (0.1, 0.9), of=dropping).plan
    assert [(one.passage_id, one.reason) for one in plan if one.kind is CorrectionKind.DISCARD] == [
        ("p2", "score 0.10 < 0.20")
    ]


def test_scores_that_agree_promote_by_the_answering_ones() -> None:
    option = replace(TWO, low_variance_promotes=True)
    assert decided((0.55, 0.9), (0.55, 0.1), of=option).reason == (
        "best answering 0.55 > 0.50 and the scores agree (variance 0.00)"
    )
    assert decided((0.55, 0.9), (0.0, 0.1), (0.0, 0.1), of=option).action is CORRECT  # variance 0.067
    assert decided((0.59, 0.9), (0.59, 0.9), (0.0, 0.9), (0.0, 0.9), of=option).action is CORRECT  # 0.087
    assert decided((0.55, 0.3), (0.55, 0.3), of=option).action is INCORRECT, "not between the thresholds"


def test_a_rule_settles_two_signals_too() -> None:
    ruled = replace(TWO, skip=(("few_context", 2),))
    decision = decided((0.1, 0.1), of=ruled)
    assert (decision.action, decision.score, decision.topical, decision.rule) == (CORRECT, 1.0, None, "few_context")


# --- against paper, with random grades ------------------------------------------------------------------------------

thousandths = st.integers(0, 1000).map(lambda n: n / 1000)
pairs = st.tuples(thousandths, thousandths)
thresholds = pairs.map(sorted)


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    lower, upper = draw(thresholds)
    return {
        "lower": lower,
        "upper": upper,
        "at_lower": draw(st.sampled_from([AMBIGUOUS, INCORRECT])),
        "at_upper": draw(st.sampled_from([CORRECT, AMBIGUOUS])),
        "low_variance_promotes": draw(st.booleans()),
        "ungraded": draw(st.none() | thousandths),
        "top": draw(st.none() | st.integers(1, 3)),
    }


@settings(deadline=None)
@given(of=options(), scores=st.lists(st.none() | thousandths, max_size=5))
def test_with_equal_signals_it_decides_as_paper(of: dict[str, Any], scores: list[float | None]) -> None:
    paper, ours = replace(policy("paper"), **of), replace(TWO, **of)
    found, alike = twice(*((s, s) if s is not None else None for s in scores))
    expected = decide(paper, found, alike)
    decision = decide(ours, found, alike)
    assert decision.topical in (decision.score, None)
    told = {"reason": expected.reason, "topical": None}
    assert replace(decision, **told) == expected
    assert decision.confidence == expected.confidence
    assert decide(ours, *graded(*scores)) == decide(paper, *graded(*scores)), "and without parts to the letter"


@settings(deadline=None)
@given(of=options(), signals=st.lists(st.none() | thousandths | pairs, max_size=5))
def test_it_is_the_sentence_that_defines_it(of: dict[str, Any], signals: list[Given]) -> None:
    ours = replace(TWO, **of | {"low_variance_promotes": False})
    counted = [
        one if isinstance(one, tuple) else (value, value)
        for one in signals[: ours.top]
        if (value := ours.ungraded if one is None else one) is not None
    ]
    decision = decided(*signals, of=ours)
    if not any(one is not None for one in signals[: ours.top]):
        assert decision.action is (AMBIGUOUS if signals else INCORRECT)
        return
    answering, topical = (max(one[side] for one in counted) for side in (0, 1))
    good = answering > ours.upper or (answering == ours.upper and ours.at_upper is CORRECT)
    poor = topical < ours.lower or (topical == ours.lower and ours.at_lower is INCORRECT)
    assert decision.action is (CORRECT if good else INCORRECT if poor else AMBIGUOUS)
    assert decision.score == answering
    assert decision.topical in (topical, None)


@given(of=options(), signals=st.lists(pairs, min_size=1, max_size=4))
def test_no_reason_ever_looks_contradictory(of: dict[str, Any], signals: list[tuple[float, float]]) -> None:
    reason = decided(*signals, of=replace(TWO, **of | {"low_variance_promotes": False})).reason
    said = re.findall(r"best (\w+) ([\d.]+) (.+?) (upper|lower) ([\d.]+)", reason)
    assert [(name, threshold) for name, _, _, threshold, _ in said] in (
        [("answering", "upper")],
        [("answering", "upper"), ("topical", "lower")],
    )
    for _, score, sign, _, limit in said:
        one, other = float(score), float(limit)
        assert {"≥": one >= other, ">": one > other, "<": one < other, "≤": one <= other}[sign], reason


# --- distance to flip -----------------------------------------------------------------------------------------------

Evidence = tuple[tuple[Passage, ...], tuple[Grade, ...] | None, tuple[()], tuple[Round, ...]]
GRID = [n / 1000 for n in range(1001)]


def act(of: Policy, evidence: Evidence, lower: float, upper: float) -> Action:
    return replay_rounds(of.with_thresholds(lower, upper), *evidence).decision.action


def brute_force(actions: dict[float, Action], at: float) -> set[float]:
    """The values around `at` that give its action without a break."""
    values, same = sorted(actions), set()
    for path in (values[values.index(at) :], values[values.index(at) :: -1]):
        for value in path:
            if actions[value] is not actions[at]:
                break
            same.add(value)
    return same


def holds(interval: Interval, value: float) -> bool:
    low = value >= interval.low if interval.low_included else value > interval.low
    high = value <= interval.high if interval.high_included else value < interval.high
    return low and high


def assert_exact(of: Policy, evidence: Evidence, grid: list[float]) -> None:
    found = stability(of, *evidence)
    lowers = {v: act(of, evidence, v, of.upper) for v in {*grid, of.lower}}
    uppers = {v: act(of, evidence, of.lower, v) for v in {*grid, of.upper}}
    assert {v for v in lowers if holds(found.lower, v)} == brute_force(lowers, of.lower)
    assert {v for v in uppers if holds(found.upper, v)} == brute_force(uppers, of.upper)


coarse = st.integers(0, 20).map(lambda n: n / 20)
FINE = [n / 40 for n in range(41)]  # the scores below, and what lies between any two of them


@settings(max_examples=60, deadline=None)
@given(of=options(), signals=st.lists(st.none() | coarse | st.tuples(coarse, coarse), max_size=4))
def test_the_distance_to_flip_agrees_with_brute_force(of: dict[str, Any], signals: list[Given]) -> None:
    assert_exact(replace(TWO, **of), (*twice(*signals), (), ()), sorted({*FINE, *GRID[::25]}))


@pytest.mark.parametrize("ends", [(0.4, 0.6), (0.2, 0.9), (0.8, 0.3)])
@pytest.mark.parametrize(
    "signals",
    [
        [(0.31, 0.82), (0.1, 0.2)],
        [(0.7, 0.2), (0.1, 0.35)],
        [(0.65, 0.9), None],
        [(0.05, 0.1), 0.3],
        [(0.4, 0.4), (0.6, 0.6)],
        [None, None],
    ],
)
def test_intervals_are_exact_to_a_thousandth(signals: list[Given], ends: tuple[float, float]) -> None:
    assert_exact(TWO.with_thresholds(*ends), (*twice(*signals), (), ()), GRID)


@settings(max_examples=40, deadline=None)
@given(
    of=options(),
    signals=st.lists(st.lists(st.none() | coarse | st.tuples(coarse, coarse), max_size=3), min_size=4, max_size=4),
)
def test_intervals_hold_across_recorded_rounds(of: dict[str, Any], signals: list[list[Given]]) -> None:
    again = replace(
        TWO,
        **of,
        max_rounds=3,
        ambiguous=(*TWO.ambiguous, ("again", None)),
        incorrect=(*TWO.incorrect, ("again", WAYS)),
    )
    groups, grades = [], []
    for number, group in enumerate(signals):
        _, given_grades = twice(*group)
        groups.append(tuple(passage(f"r{number}{one.passage_id}") for one in given_grades))
        grades += [replace(one, passage_id=f"r{number}{one.passage_id}") for one in given_grades]
    rounds = tuple(
        round_of(path, *found) for path, found in zip(("keyword", "refine", "keyword refine"), groups[1:], strict=True)
    )
    assert_exact(again, (groups[0], tuple(grades), (), rounds), FINE)


def test_each_threshold_flips_at_its_own_signal() -> None:
    found, grades = twice((0.31, 0.82))
    stable = stability(TWO, found, grades)
    assert stable.lower == Interval(0.0, 0.82, True, True, None, INCORRECT)
    assert stable.upper == Interval(0.31, 1.0, False, True, CORRECT, None)
    assert [(flip.to, flip.threshold, flip.relation, flip.at) for flip in flips(stable, TWO)] == [
        (CORRECT, "upper", "≤", 0.31),
        (INCORRECT, "lower", ">", 0.82),
    ]


# --- the record -----------------------------------------------------------------------------------------------------


def recorded(*signals: Given, of: Policy = TWO) -> Trace:
    found, grades = twice(*signals)
    return trace(of, passages=found, grades=grades, decision=decide(of, found, grades))


def test_a_run_keeps_both_numbers_through_json() -> None:
    run = recorded((0.31, 0.82), None)
    again = Trace.from_json(run.to_json())
    assert again == run
    assert again.decision is not None and again.decision.topical == 0.82
    assert again.settings.policy.score == "two_signals"


def test_a_run_recorded_before_there_were_two_signals_is_read() -> None:
    data = json.loads(recorded(0.5, of=policy("paper")).to_json())
    del data["decision"]["topical"]
    assert Trace.from_dict(data) == recorded(0.5, of=policy("paper"))


def test_a_run_of_another_policy_is_decided_again_by_its_parts() -> None:
    run = recorded((0.1, 0.9), of=policy("paper"))
    assert run.decision is not None and run.decision.score == 0.5
    decision = reroute(run, TWO).decision
    assert (decision.action, decision.score, decision.topical) == (AMBIGUOUS, 0.1, 0.9)


def test_the_summary_tells_both_numbers() -> None:
    told = summarize(recorded((0.31, 0.82)))
    assert (told.action, told.score, told.topical, told.confidence) == ("AMBIGUOUS", 0.31, 0.82, 0.82)
    assert summarize(recorded(0.5)).topical is None


def test_a_policy_of_ones_own_may_look_again_by_two_signals() -> None:
    of = replace(TWO, max_rounds=2, incorrect=(*TWO.incorrect, ("again", WAYS)))
    found, grades = twice((0.1, 0.2))
    better = replace(twice((0.8, 0.9))[1][0], passage_id="p9")
    decision_path = replay_rounds(of, found, (*grades, better), (), (round_of("keyword", passage("p9")),))
    assert [one.decision.action for one in decision_path.iterations] == [INCORRECT, CORRECT]


# --- two scales of one evaluator --------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", ["worst-chunk", "rank-weighted", "agentic", "signals", "paper"])
def test_no_policy_mixes_a_coarse_grade_with_finer_ones(name: str) -> None:
    found, grades = on_scales(((0.8, 0.8), False), ((0.1, 0.1), True), ((0.8, 0.8), False))
    of = replace(policy(name), skip=())
    alone = decide(of, (found[0], found[2]), (grades[0], grades[2]), even(0.5))
    mixed = decide(of, found, grades, even(0.5))
    assert (mixed.action, mixed.score, mixed.confidence) == (alone.action, alone.score, alone.confidence)
    assert [one.passage_id for one in mixed.plan if one.kind is CorrectionKind.DISCARD] in (["p2"], [None])


def test_a_policy_that_reads_no_grade_sets_none_aside() -> None:
    found, grades = on_scales(((0.8, 0.8), False), ((0.1, 0.1), True))
    decision = decide(policy("heuristic"), found, grades, even(0.9))
    assert not decision.wants(CorrectionKind.DISCARD) and "coarse" not in decision.reason


def test_the_reason_says_what_weakens_the_grades_that_decide() -> None:
    found, grades = twice((0.3, 0.5), (0.1, 0.9), (0.0, 0.0))
    cautious = tuple(replace(one, caution=f"less sure in {one.passage_id}") for one in grades)
    assert decide(TWO, found, cautious).reason.endswith("; less sure in p1; less sure in p2")
    same = tuple(replace(one, caution="less sure") for one in grades)
    assert decide(TWO, found, same).reason.endswith("; less sure")
    assert "less sure" not in decide(policy("heuristic"), found, same, even(0.9)).reason
