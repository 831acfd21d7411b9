"""The way of a question through several retrievals: what is looked at when, and where the way ends."""

from dataclasses import replace

import pytest

from crag_core.base.types.decisions import Action, CorrectionKind, Handling
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Engine, Passage, Retrieval, Round
from crag_core.decision.policy import Policy
from crag_core.decision.rounds import DecisionPath, replay_rounds
from crag_core.decision.signals import UNSURE
from crag_core.decision.steps import EXPAND, WAYS
from tests.builders import even, grade, passage, passages, policy, round_of

CORRECT, AMBIGUOUS, INCORRECT = Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT
AGENTIC = replace(policy("agentic"), skip=())

Scored = dict[str, float | None]


def grades_of(scores: Scored) -> tuple[Grade, ...]:
    return tuple(grade(name, score) for name, score in scores.items())


def named(names: str) -> tuple[Passage, ...]:
    return tuple(passage(name) for name in names.split())


def way(scores: Scored, *rounds: Round, of: Policy = AGENTIC) -> DecisionPath:
    """p1, p2 and p3 are found first; `scores` are the grades of all passages, as far as they were asked about."""
    return replay_rounds(of, passages(3), grades_of(scores), (), rounds)


def ids(found: tuple[Passage, ...]) -> str:
    return " ".join(one.id for one in found)


def looks(decision_path: DecisionPath) -> list[tuple[str, str, Action]]:
    """Each iteration: the rounds before it, the passages looked at, the action."""
    return [(" ".join(one.path), ids(one.passages), one.decision.action) for one in decision_path.iterations]


LOW: Scored = {"p1": 0.1, "p2": 0.2, "p3": 0.1}
HALF: Scored = {"p1": 0.5, "p2": 0.4, "p3": 0.2}


# What a round gives to look at


def test_refining_keeps_what_was_worth_keeping_and_adds_what_is_new() -> None:
    decision_path = way(HALF | {"p4": 0.9, "p5": 0.8}, round_of("refine", *named("p4 p2 p3 p1 p5")))
    assert looks(decision_path)[1:] == [("refine", "p1 p2 p4 p5", AMBIGUOUS)]
    assert decision_path.decision.score == pytest.approx(0.65)


def test_another_strategy_looks_only_at_what_it_found() -> None:
    decision_path = way(LOW | {"p4": 0.9, "p5": 0.8, "p6": 0.1}, round_of("keyword", *named("p4 p5 p6")))
    assert looks(decision_path) == [("", "p1 p2 p3", INCORRECT), ("keyword", "p4 p5 p6", CORRECT)]
    assert ids(decision_path.kept) == "p4 p5"


# Expansion


def expanded(*first: str, then: tuple[str, ...]) -> Round:
    """The question as it is, and expanded; signals are measured over the evidence."""
    retrievals = tuple(Retrieval("ferry", Engine.HYBRID, tuple(map(passage, names, names))) for names in (first, then))
    return Round((EXPAND,), retrievals, "expanded by boat", (("boat", "synonym of ferry"),), even(0.9))


FOUND = tuple(map(passage, "abc", "abc"))


def test_an_expanded_retrieval_is_fused_and_not_decided_again() -> None:
    made = expanded(*"abc", then=("c", "d"))
    decision_path = replay_rounds(policy("heuristic"), FOUND, None, even(0.6), (made,))
    assert looks(decision_path) == [("", "a b c", AMBIGUOUS)]
    # c is first and third, a first, b and d second.
    assert (ids(decision_path.evidence), decision_path.wanted, decision_path.ungraded) == ("c a b d", None, ())
    assert decision_path.kept == decision_path.evidence


def test_an_expanded_retrieval_keeps_to_the_most_passages_and_to_the_token_budget() -> None:
    made = expanded(*"abc", then=("c", "d"))
    of = policy("heuristic")
    few = replace(of, expansion=replace(of.expansion, max_chunks=2))
    assert ids(replay_rounds(few, FOUND, None, even(0.6), (made,)).evidence) == "c a"
    tight = replace(of, refinement=replace(of.refinement, budget=3))
    assert ids(replay_rounds(tight, FOUND, None, even(0.6), (made,)).evidence) == "c a b"


# Which recorded round belongs to which way


def test_a_round_is_used_only_after_the_rounds_that_led_to_it() -> None:
    later = round_of("keyword rewritten", *named("p4 p5 p6"))
    scores = LOW | {"p4": 0.9, "p5": 0.8, "p6": 0.9}
    assert way(scores, later).wanted == ("keyword",)
    assert [action for *_, action in looks(way(scores, later, round_of("keyword")))] == [INCORRECT, INCORRECT, CORRECT]


# What is not graded yet


def test_ungraded_new_passages_stop_the_way() -> None:
    rounds = (round_of("keyword", *named("p4 p5 p6")), round_of("keyword refine", *named("p7")))
    decision_path = way(LOW | {"p4": 0.5}, *rounds)
    assert [path for path, *_ in looks(decision_path)] == ["", "keyword"]
    assert (ids(decision_path.ungraded), decision_path.wanted, ids(decision_path.evidence)) == (
        "p5 p6",
        None,
        "p4 p5 p6",
    )


def test_new_passages_of_which_none_could_be_graded_end_the_way_without_a_conclusion() -> None:
    decision_path = way(LOW | {"p4": None, "p5": None, "p6": None}, round_of("keyword", *named("p4 p5 p6")))
    assert (decision_path.decision.action, decision_path.decision.reason) == (AMBIGUOUS, "no chunk could be graded")
    assert (decision_path.wanted, decision_path.ungraded, ids(decision_path.kept)) == (None, (), "p4 p5 p6")


@pytest.mark.parametrize("name", ["paper", "worst-chunk", "rank-weighted", "signals", "agentic"])
def test_a_run_without_grades_must_be_graded_first(name: str) -> None:
    decision_path = replay_rounds(policy(name), passages(3), None, even(0.6))
    assert (decision_path.ungraded, decision_path.wanted) == (passages(3), None)


def test_few_chunks_of_a_later_round_are_graded_and_no_rule_approves_them() -> None:
    decision_path = way(LOW, round_of("keyword", *named("p4 p5")), of=policy("agentic"))
    assert (decision_path.decision.rule, ids(decision_path.ungraded)) == (None, "p4 p5")


def test_a_rule_that_measures_the_chunks_applies_to_each_round() -> None:
    near = tuple(passage(name, found_by=("dense",), scores=(("cosine", 0.9),)) for name in ("p4", "p5", "p6"))
    decision_path = way(LOW, round_of("keyword", *near), of=policy("agentic"))
    assert (decision_path.decision.rule, decision_path.decision.action) == ("high_vector_score", CORRECT)


# Moving thresholds over a recorded way


ROUNDS = (round_of("keyword", *named("p4 p5 p6")), round_of("keyword refine", *named("p7 p8")))
ALL = LOW | {"p4": 0.5, "p5": 0.4, "p6": 0.1, "p7": 0.95, "p8": 0.9}


def test_thresholds_that_lead_another_way_want_another_round() -> None:
    # From lower 0.2 on p2 is kept, and the keywords are to be refined, which this run did not do.
    decision_path = way(ALL, *ROUNDS, of=AGENTIC.with_thresholds(0.2, 0.65))
    assert (looks(decision_path), decision_path.wanted) == ([("", "p1 p2 p3", AMBIGUOUS)], ("refine",))


# The last iteration


def limited(iterations: int, *ways: str) -> Policy:
    return replace(AGENTIC, max_rounds=iterations, incorrect=(("discard", None), ("again", ways or WAYS)))


STRATEGIES = tuple(round_of(path) for path in ("keyword", "keyword rewritten", "keyword rewritten expanded"))


@pytest.mark.parametrize(
    ("iterations", "paths", "searches"),
    [
        (1, [""], False),
        (2, ["", "keyword"], False),
        (3, ["", "keyword", "keyword rewritten"], False),
        (4, ["", "keyword", "keyword rewritten", "keyword rewritten expanded"], False),
        (5, ["", "keyword", "keyword rewritten", "keyword rewritten expanded"], True),
        (20, ["", "keyword", "keyword rewritten", "keyword rewritten expanded"], True),
    ],
)
def test_the_way_ends_at_the_last_iteration_or_with_the_web(iterations: int, paths: list[str], searches: bool) -> None:
    decision_path = way(LOW, *STRATEGIES, of=limited(iterations))
    assert [path for path, *_ in looks(decision_path)] == paths
    assert (decision_path.decision.next_round, decision_path.wanted) == (None, None)
    assert decision_path.decision.wants(CorrectionKind.WEB_SEARCH) is searches


def test_the_last_iteration_keeps_all_that_it_found_where_none_is_worth_keeping() -> None:
    decision_path = way(LOW | {"p4": 0.1, "p5": 0.2}, round_of("keyword", *named("p4 p5")), of=limited(2))
    assert (decision_path.decision.action, decision_path.decision.handling) == (INCORRECT, Handling.KEEP)
    assert ids(decision_path.kept) == "p4 p5"


def test_a_round_that_found_nothing_is_no_reason_to_look_back_while_another_is_asked_for() -> None:
    decision_path = way(LOW, round_of("keyword"), of=limited(4))
    assert (ids(decision_path.iterations[-1].passages), decision_path.wanted) == ("", ("keyword", "rewritten"))


def test_by_a_question_that_is_two_nothing_needs_a_grade() -> None:
    found = passages(2)
    assert replay_rounds(AGENTIC, found, None, ((UNSURE, 1.0),)).ungraded == ()
    assert replay_rounds(AGENTIC, found, None).ungraded == found
