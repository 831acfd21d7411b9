"""The action of one chunk by its own score, as description 004 records it for each."""

from dataclasses import replace

import pytest

from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.decision.decide import chunk_action, decide
from crag_core.evaluators.policies import plain_rag
from tests.builders import POLICIES, grade, graded, passage, policy, twice

CORRECT, AMBIGUOUS, INCORRECT = Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT
CHUNK = passage("p1")


@pytest.mark.parametrize(
    ("score", "action"),
    [(1.0, CORRECT), (0.7, CORRECT), (0.699, AMBIGUOUS), (0.3, AMBIGUOUS), (0.299, INCORRECT), (0.0, INCORRECT)],
)
def test_the_thresholds_of_description_004_hold_for_each_chunk(score: float, action: Action) -> None:
    assert chunk_action(policy("worst-chunk"), CHUNK, grade("p1", score)) is action


def test_a_reply_that_could_not_be_read_counts_as_in_004_and_otherwise_not_at_all() -> None:
    unread = Grade("p1", None, cause="not readable")
    assert chunk_action(policy("worst-chunk"), CHUNK, unread) is AMBIGUOUS, "0.5 where the reply has no score"
    assert chunk_action(policy("paper"), CHUNK, unread) is None
    assert chunk_action(policy("worst-chunk"), CHUNK, None) is None


def test_the_worst_of_the_chunk_actions_is_the_action_of_the_run() -> None:
    found, grades = graded(0.9, 0.4, 0.7)
    alone = [chunk_action(policy("worst-chunk"), *each) for each in zip(found, grades, strict=True)]
    assert alone == [CORRECT, AMBIGUOUS, CORRECT]
    assert decide(policy("worst-chunk"), found, grades).action is AMBIGUOUS


def test_of_two_signals_answering_is_held_against_upper_and_topical_against_lower() -> None:
    of = policy("two-signal").with_thresholds(0.3, 0.7)
    found, grades = twice((0.8, 0.1), (0.2, 0.5), (0.2, 0.2))
    assert [chunk_action(of, *each) for each in zip(found, grades, strict=True)] == [CORRECT, AMBIGUOUS, INCORRECT]


def test_no_chunk_has_an_action_where_none_is_compared_with_the_thresholds() -> None:
    told = {name for name in POLICIES if chunk_action(policy(name), CHUNK, grade("p1", 0.9))}
    assert told == {"paper", "worst-chunk", "two-signal", "adaptive-rag", "astute-rag"}
    assert chunk_action(plain_rag(), CHUNK, grade("p1", 0.9)) is None


def test_no_rule_speaks_for_a_chunk() -> None:
    of = replace(policy("paper"), skip=(("few_context", 9),))
    assert chunk_action(of, CHUNK, grade("p1", 0.0)) is INCORRECT
