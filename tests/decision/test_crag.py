"""CRAG as tables: scores, ties, what counts, rules that skip grading, and the plan of every action."""

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.types.decisions import Action
from crag_core.decision.crag import Chunk, Evidence, Plan, Routing, Steps, decide
from crag_core.decision.steps import read_steps

CORRECT, AMBIGUOUS, INCORRECT = Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT
Given = tuple[float, float] | float | None

PAPER = Routing(  # arXiv 2401.15884
    score="best",
    lower=0.4,
    upper=0.6,
    correct=(("refine", None),),
    ambiguous=(("refine", None), ("web", None)),
    incorrect=(("discard", None), ("web", None)),
)


def chunk(number: int, grade: Given = None, **fields: Any) -> Chunk:
    """A pair is answering and topical; "c1" has the number 1."""
    answering, topical = grade if isinstance(grade, tuple) else (grade, None)
    return Chunk(f"c{number}", answering, topical, **fields)


def seen(*grades: Given, **fields: Any) -> Evidence:
    return Evidence(tuple(chunk(number, grade) for number, grade in enumerate(grades, 1)), **{"signals": {}} | fields)


def result(of: Routing, evidence: Evidence) -> tuple[Action, float | None, str]:
    action, scored, _ = decide(of, evidence)
    return action, scored.score, " ".join(scored.by)


@pytest.mark.parametrize(
    ("grades", "action", "plan"),
    [
        ((0.9, 0.1), CORRECT, Plan("refine")),
        ((0.5, 0.5), AMBIGUOUS, Plan("refine", web=True)),
        ((0.3, 0.1), INCORRECT, Plan("discard", web=True)),
        ((), INCORRECT, Plan("discard", web=True)),
        ((None, None), AMBIGUOUS, Plan("refine")),  # nothing is known of the evidence, so no more is looked for
    ],
)
def test_the_algorithm_of_the_paper(grades: tuple[Given, ...], action: Action, plan: Plan) -> None:
    decided, _, planned = decide(PAPER, seen(*grades))
    assert (decided, planned) == (action, plan)


# --- scores ---------------------------------------------------------------------------------------------------------

AGREE = {"keyword_coverage": 0.5, "agreement": 0.6}
WEIGHTS = (("rerank_top3", 0.4), ("keyword_coverage", 0.3), ("agreement", 0.3))


@pytest.mark.parametrize(
    ("score", "grades", "overall", "by"),
    [
        ("best", (0.2, 0.9, 0.9), 0.9, "c2"),  # ties go to the rank
        ("worst", (0.9, 0.2, 0.2), 0.2, "c2"),
        ("rank_weighted", (0.8, 0.5), (0.8 + 0.5 / 2) / 1.5, "c1 c2"),
        ("rank_weighted", (0.9, None, 0.3), 0.75, "c1 c3"),  # (0.9 + 0.3 / 3) / (1 + 1 / 3): the third stays third
        ("mean_of_kept", (0.9, 0.39, 0.4), 0.65, "c1 c3"),  # 0.40 is not below lower
        ("mean_of_kept", (0.39, 0.1), None, "c1 c2"),
        ("whole_context", (0.9, 0.1), None, ""),
        ("signals", (0.9, None), (0.3 * 0.5 + 0.3 * 0.6) / 0.6, "c1 c2"),  # weights of what is there
    ],
)
def test_grades_become_one_score(score: str, grades: tuple[Given, ...], overall: float | None, by: str) -> None:
    of = replace(PAPER, score=score, weights=WEIGHTS if score == "signals" else ())
    _, found, chunks = result(of, seen(*grades, signals=AGREE))
    assert (found, chunks) == (None if overall is None else pytest.approx(overall, abs=1e-9), by)


def test_a_mean_of_equal_values_equals_them() -> None:
    for score in ("rank_weighted", "mean_of_kept"):
        assert result(replace(PAPER, score=score), seen(*(7 * [0.6]))) == (CORRECT, 0.6, "c1 c2 c3 c4 c5 c6 c7")


@pytest.mark.parametrize(("sufficiency", "action"), [(1.0, CORRECT), (0.5, AMBIGUOUS), (0.0, INCORRECT)])
def test_the_whole_context_is_judged_without_a_grade(sufficiency: float, action: Action) -> None:
    of = replace(PAPER, score="whole_context")
    found = result(of, seen(None, None, signals={"sufficiency": sufficiency}))
    assert found == (action, sufficiency, "c1 c2")


@pytest.mark.parametrize(
    ("grades", "action", "numbers", "by"),
    [
        (((0.7, 0.1), (0.1, 0.9)), CORRECT, (0.7, 0.9), "c1 c2"),  # the answer counts, whatever the subject
        (((0.5, 0.4),), AMBIGUOUS, (0.5, 0.4), "c1"),
        (((0.5, 0.3), (0.2, 0.39)), INCORRECT, (0.5, 0.39), "c1 c2"),
        ((0.5, 0.3), AMBIGUOUS, (0.5, None), "c1"),  # without parts: one score, as in the paper
    ],
)
def test_of_two_scores_each_has_its_threshold(
    grades: tuple[Given, ...], action: Action, numbers: tuple[float, float | None], by: str
) -> None:
    decided, found, _ = decide(replace(PAPER, score="two_signals"), seen(*grades))
    assert (decided, (found.score, found.topical), " ".join(found.by)) == (action, numbers, by)


@pytest.mark.parametrize(
    ("score", "at_lower", "at_upper", "action"),
    [
        (0.6001, AMBIGUOUS, AMBIGUOUS, CORRECT),
        (0.6, AMBIGUOUS, CORRECT, CORRECT),
        (0.6, AMBIGUOUS, AMBIGUOUS, AMBIGUOUS),
        (0.5999, INCORRECT, CORRECT, AMBIGUOUS),
        (0.4001, INCORRECT, CORRECT, AMBIGUOUS),
        (0.4, AMBIGUOUS, CORRECT, AMBIGUOUS),
        (0.4, INCORRECT, CORRECT, INCORRECT),
        (0.3999, AMBIGUOUS, CORRECT, INCORRECT),
    ],
)
def test_ties_at_the_thresholds(score: float, at_lower: Action, at_upper: Action, action: Action) -> None:
    of = replace(PAPER, at_lower=at_lower, at_upper=at_upper)
    assert result(of, seen(score))[0] is action


def test_on_both_thresholds_the_upper_one_counts() -> None:
    of = replace(PAPER, lower=0.5, upper=0.5, at_lower=INCORRECT)
    assert [result(of, seen(score))[0] for score in (0.5, 0.4999)] == [CORRECT, INCORRECT]


@pytest.mark.parametrize(
    ("ungraded", "chunks", "overall"),
    [
        (None, (chunk(1, 0.9), chunk(2)), 0.9),
        (0.5, (chunk(1, 0.9), chunk(2)), 0.5),
        (0.5, (chunk(1, 0.9), chunk(2, tried=False)), 0.9),  # never asked about: it does not count
        (0.5, (chunk(1), chunk(2)), None),  # no grade at all: nothing is known
    ],
)
def test_what_a_chunk_counts_as_that_could_not_be_graded(
    ungraded: float | None, chunks: tuple[Chunk, ...], overall: float | None
) -> None:
    assert result(replace(PAPER, score="worst", ungraded=ungraded), Evidence(chunks, {}))[1] == overall


def test_only_the_first_chunks_are_judged() -> None:
    assert result(replace(PAPER, top=2), seen(0.5, 0.1, 0.9)) == (AMBIGUOUS, 0.5, "c1")
    assert result(replace(PAPER, top=2), seen(None, None, 0.9)) == (AMBIGUOUS, None, "")


@pytest.mark.parametrize(
    ("grades", "action"),
    [
        ((0.55, 0.55), CORRECT),
        ((0.5, 0.5), AMBIGUOUS),  # not above one half
        ((0.59, 0.59, 0.59, 0.0, 0.0), CORRECT),  # variance 0.083
        ((0.3, 0.3), INCORRECT),
        (((0.55, 0.9), (0.55, 0.1)), CORRECT),
        (((0.55, 0.3), (0.55, 0.3)), INCORRECT),  # off the subject
    ],
)
def test_grades_that_agree_are_correct_from_one_half_where_the_option_is_on(
    grades: tuple[Given, ...], action: Action
) -> None:
    of = replace(PAPER, score="two_signals", low_variance_promotes=True)
    assert result(of, seen(*grades))[0] is action
    assert result(replace(of, low_variance_promotes=False), seen(*grades))[0] is not CORRECT


def test_grades_that_differ_are_not_promoted_and_a_score_without_any_neither() -> None:
    of = replace(PAPER, score="rank_weighted", low_variance_promotes=True)
    assert result(of, seen(1.0, 0.0, 0.2))[:2] == (AMBIGUOUS, pytest.approx(0.5818, abs=1e-4))  # variance 0.187
    five_of_ten = seen(*[0.59] * 5, *[0.0] * 5)
    assert result(replace(of, top=5), five_of_ten)[0] is CORRECT, "the variance of those that are judged"
    assert result(of, five_of_ten)[0] is AMBIGUOUS
    tenth = seen(1.0, 1.0, *[0.5] * 6, 0.0, 0.0)
    assert result(replace(of, upper=1.0), tenth)[0] is CORRECT, "a variance of 0.1 still agrees"
    measured = replace(of, score="signals", weights=(("agreement", 1.0),))
    assert result(measured, seen(None, signals={"agreement": 0.55}))[0] is AMBIGUOUS


# --- rules that skip grading ----------------------------------------------------------------------------------------

NEAR = (chunk(1, 0.0, cosine=0.8), chunk(2, 0.0, cosine=0.95))
PINNED = (chunk(1, 0.0, pinned=True), chunk(2, 0.0, pinned=True))


@pytest.mark.parametrize(
    ("rules", "evidence", "rule"),
    [
        (["always"], seen(0.0), "always"),
        (["always"], seen(), "empty"),
        (["read_file"], Evidence(PINNED, {}), "read_file"),
        (["read_file"], Evidence((*PINNED, chunk(3, 0.0)), {}), "score"),
        ([{"few_context": 2}], seen(0.0, 0.0), "few_context"),
        ([{"few_context": 2}], seen(0.0, 0.0, 0.0), "score"),
        ([{"few_context": 2}], seen(0.0, rounds=("keyword",)), "score"),  # few after a search that failed
        ([{"high_vector_score": 0.8}], Evidence(NEAR, {}), "high_vector_score"),
        ([{"high_vector_score": 0.81}], Evidence(NEAR, {}), "score"),
        ([{"high_vector_score": 0.8}], Evidence((*NEAR, chunk(3, 0.0)), {}), "score"),  # one was found otherwise
        ([{"high_vector_score": 0.8}, {"few_context": 2}], Evidence(NEAR, {}), "high_vector_score"),  # in order
        (["always"], seen(0.0, is_reread=True), "score"),  # graded in an earlier round: no rule approves it now
        (["one_retrieval"], seen(0.0, signals={"class": 0.5}), "one_retrieval"),
        (["one_retrieval"], seen(0.0, signals={"class": 1.0}), "score"),
        (["no_retrieval", "one_retrieval"], seen(0.0, signals={}), "unclassified"),
    ],
)
def test_a_rule_makes_correct_without_a_grade(rules: list[Any], evidence: Evidence, rule: str) -> None:
    action, found, _ = decide(replace(PAPER, skip=tuple(read_steps(rules))), evidence)
    assert found.why == rule
    if rule in ("empty", "unclassified"):
        assert (action, found.score) == ({"empty": INCORRECT}.get(rule, AMBIGUOUS), None)
    else:
        assert (action, found.score) == ((INCORRECT, 0.0) if rule == "score" else (CORRECT, 1.0))


@pytest.mark.parametrize("grades", [(), (0.9,)])
def test_a_question_that_needs_no_document_is_correct_without_any(grades: tuple[Given, ...]) -> None:
    of = replace(PAPER, skip=(("no_retrieval", None),))
    assert result(of, seen(*grades, signals={"class": 0.0})) == (CORRECT, None, "")


# --- plans ----------------------------------------------------------------------------------------------------------

AGAIN = {"again": ("keyword", "rewritten", "web")}


@pytest.mark.parametrize(
    ("steps", "evidence", "plan"),
    [
        (["keep"], seen(0.5), Plan("keep")),
        (["extract", "web"], seen(0.5), Plan("extract", web=True)),
        # drop
        (["keep", {"drop": 0.45}], seen(0.5, 0.45, 0.44, None), Plan("keep", ("c3", "c4"))),
        (["keep", {"drop": 0.45}], seen(None, None), Plan("keep")),  # nothing is known against them
        # web_if_fewer: of chunks that refinement leaves a sentence of
        (["refine", {"web_if_fewer": 2}], seen(0.5, 0.1), Plan("refine", web_below=2)),
        (["refine", {"web_if_fewer": 2}], seen(0.5, 0.1, left=2), Plan("refine")),
        (["refine", {"web_if_fewer": 2}], seen(0.5, 0.1, left=1), Plan("refine", web=True)),
        (["refine", {"web_if_fewer": 2}], seen(0.5), Plan("refine", web=True)),  # too few before it
        (["refine", {"drop": 0.2}, {"web_if_fewer": 2}], seen(0.5, 0.1), Plan("refine", ("c2",), web=True)),
        (["refine", {"web_if_fewer": 1}], seen(0.5), Plan("refine", web_below=1)),
        (["keep", {"web_if_fewer": 2}], seen(0.5, 0.1), Plan("keep")),  # nothing is refined, so it is known
        (["refine", {"web_if_fewer": 2}], seen(None, None), Plan("refine")),
        # documents
        (["documents"], seen(0.5), Plan("documents", again="documents")),
        (["documents"], seen(0.5, is_last=True), Plan("keep")),
        (["documents", {"drop": 0.2}], seen(0.5, 0.1), Plan("documents", ("c2",), again="documents")),
        (["documents", {"drop": 0.2}], seen(0.5, 0.1, is_last=True), Plan("keep")),
        (["documents"], seen(None), Plan("keep")),
        # expand, once
        (["keep", "expand"], seen(0.5), Plan("keep", again="expand")),
        (["keep", "expand"], seen(0.5, rounds=("expand",)), Plan("keep")),
        # again: more of the same, or in the next way
        (["keep", "again"], seen(0.5), Plan("keep", again="refine")),
        (["keep", "again"], seen(0.5, rounds=("refine",)), Plan("keep", again="refine")),
        (["keep", "again"], seen(0.5, rounds=("refine", "refine")), Plan("keep")),  # three retrievals at most
        (["keep", "again"], seen(None), Plan("keep")),
        (["keep", "again"], seen(0.5, is_last=True), Plan("keep")),
        (["discard", AGAIN], seen(0.5), Plan("discard", again="keyword")),
        (["discard", AGAIN], seen(0.5, rounds=("refine",)), Plan("discard", again="keyword")),
        (["discard", AGAIN], seen(0.5, rounds=("keyword",)), Plan("discard", again="rewritten")),
        (["discard", AGAIN], seen(0.5, rounds=("keyword", "rewritten")), Plan("keep")),  # no evidence but this
        (["discard", {"again": ("web", "keyword")}], seen(0.5), Plan("discard", web=True)),
        (["discard", "web", "again"], seen(0.5, rounds=("refine", "refine")), Plan("keep", web=True)),
        (["discard"], seen(0.5, is_last=True), Plan("discard")),
    ],
)
def test_the_steps_of_an_action_become_a_plan(steps: list[Any], evidence: Evidence, plan: Plan) -> None:
    of = replace(PAPER, ambiguous=pairs(steps))
    action, _, planned = decide(of, evidence)
    assert (action, planned) == (AMBIGUOUS, plan)


def pairs(steps: list[Any]) -> Steps:
    return tuple(read_steps(steps))


def test_where_nothing_was_retrieved_there_is_no_document_to_read() -> None:
    assert decide(replace(PAPER, incorrect=pairs(["documents"])), seen())[2] == Plan("keep")


def test_the_web_is_the_last_of_the_ways() -> None:
    of = replace(PAPER, ambiguous=pairs(["discard", AGAIN]), max_rounds=9)
    _, _, planned = decide(of, seen(0.5, rounds=("keyword", "rewritten")))
    assert planned == Plan("discard", web=True)
    assert decide(of, seen(0.5, rounds=("keyword", "rewritten", "web")))[2] == Plan("keep")


def test_beyond_the_judged_chunks_all_are_dropped() -> None:
    of = replace(PAPER, top=2, ambiguous=pairs(["keep", {"drop": 0.3}]))
    assert decide(of, seen(0.5, 0.3, 0.9))[2] == Plan("keep", ("c3",))


# --- grades on two scales -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "plan"),
    [
        (PAPER, Plan("refine", drop=("c2",), web=True)),
        (replace(PAPER, ungraded=0.9), Plan("refine", drop=("c2",), web=True)),  # it is no failure either
        (replace(PAPER, lower=0.55), Plan("discard", web=True)),
        (replace(PAPER, skip=(("few_context", 2),)), Plan("refine")),  # a rule reads no grade
    ],
)
def test_a_grade_that_is_set_aside_counts_nowhere_and_its_chunk_is_dropped(of: Routing, plan: Plan) -> None:
    evidence = Evidence((chunk(1, 0.5), chunk(2, tried=False, is_aside=True)), {})
    assert decide(of, evidence)[2] == plan
