"""Model calls of a question, counted before it is asked: for every policy, judge and way through it."""

from dataclasses import replace

import pytest

from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import EvaluatorCard
from crag_core.pipeline.call_budget import Calls, budget, calls_needed
from crag_core.trace.reroute import Missing
from tests.builders import CARD, POLICIES, policy

CORRECT, AMBIGUOUS, INCORRECT = Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT


def judging(batch: int) -> EvaluatorCard:
    return replace(CARD, calls_model=True, batch=batch)


# As the evaluators declare themselves: no model, one passage a call, five, twenty.
FREE, ONE, FIVE, TWENTY = CARD, judging(1), judging(5), judging(20)


@pytest.mark.parametrize(
    ("name", "judge", "calls"),
    [
        # grading + extraction + (query + judged web results) + answer, for six passages
        ("paper", FREE, ("1", "2", "2")),
        ("paper", ONE, ("7", "13–19", "13–19")),
        ("worst-chunk", FREE, ("1", "8", "2")),
        ("worst-chunk", ONE, ("7", "14", "8")),
        ("rank-weighted", ONE, ("6", "6", "6")),  # five of the six are judged
        ("heuristic", FREE, ("1", "1", "1")),  # expanding asks no model
        ("heuristic", ONE, ("7", "7", "7")),
        # At best a rule; else one to three rounds with something new to grade, and up to two queries between them.
        ("agentic", FREE, ("1–3", "1–3", "1–3")),
        ("agentic", ONE, ("1–21", "7–21", "7–21")),
        # One judgement of all together, and no answer where the policy abstains; none of nothing.
        ("sufficient-context", FREE, ("2", "1", "0–1")),
        # What it answers when it is asked is the answer; where it declines, it answers once more.
        ("self-route", FREE, ("1", "2", "0–1")),
        # The question is sorted; then an answer, before it up to two more queries.
        ("adaptive-rag", ONE, ("2–22", "8–22", "8–22")),
        # What it knows itself and what both say together; the answer, unless nothing of it bears on the question.
        ("astute-rag", ONE, ("8–9", "8–9", "6–9")),
        ("self-route", ONE, ("7", "8", "6–7")),
        ("sufficient-context", ONE, ("8", "7", "6–7")),
    ],
)
def test_calls_of_a_question_with_six_passages_by_how_it_ends(
    name: str, judge: EvaluatorCard, calls: tuple[str, str, str]
) -> None:
    found = budget(policy(name), judge, 6, writer=True, searches=True)
    assert tuple(str(found[action]) for action in Action) == calls


@pytest.mark.parametrize(
    ("name", "calls"),
    [("paper", ("7", "7", "6")), ("worst-chunk", ("7", "13", "6")), ("sufficient-context", ("8", "7", "6–7"))],
)
def test_without_the_web_nothing_is_written_for_it_or_from_nothing(name: str, calls: tuple[str, str, str]) -> None:
    found = budget(policy(name), ONE, 6, writer=True, searches=False)
    assert tuple(str(found[action]) for action in Action) == calls


@pytest.mark.parametrize("name", POLICIES)
def test_without_any_model_nothing_is_called(name: str) -> None:
    assert set(budget(policy(name), FREE, 6, writer=False, searches=True).values()) == {Calls(0, 0)}


@pytest.mark.parametrize(("passages", "calls"), [(0, 1), (1, 2), (5, 2), (6, 3), (10, 3), (11, 4), (20, 5)])
def test_a_batch_begun_is_a_call(passages: int, calls: int) -> None:
    assert budget(policy("paper"), FIVE, passages, writer=True, searches=False)[CORRECT] == Calls(calls, calls)


# What a recorded run still needs


@pytest.mark.parametrize(
    ("missing", "name", "judge", "writer", "calls"),
    [
        ((), "paper", ONE, True, 0),
        ((Missing.ANSWER,), "paper", FREE, True, 1),
        ((Missing.ANSWER,), "paper", ONE, False, 0),
        ((Missing.GRADES, Missing.ANSWER), "paper", ONE, True, 7),
        ((Missing.GRADES, Missing.ANSWER), "paper", FIVE, True, 3),
        ((Missing.WEB, Missing.ANSWER), "paper", FREE, True, 2),  # the rewrite and the answer
        ((Missing.WEB, Missing.ANSWER), "paper", ONE, True, 13),  # and two snippets and nine chunks of pages judged
        ((Missing.WEB, Missing.ANSWER), "paper", FIVE, True, 5),  # in three calls
        ((Missing.WEB,), "worst-chunk", ONE, True, 1),  # results that are not refined are not judged
        ((Missing.PAGES, Missing.ANSWER), "paper", ONE, True, 10),
        ((Missing.EXTRACTION, Missing.ANSWER), "worst-chunk", ONE, True, 7),
        ((Missing.STRIPS, Missing.EXPANSION), "heuristic", ONE, True, 0),
        ((Missing.CONSOLIDATION, Missing.ANSWER), "astute-rag", FREE, True, 3),
        ((Missing.RE_RETRIEVAL,), "agentic", TWENTY, True, 2),  # the query and one grading
        ((Missing.GRADES,), "rank-weighted", ONE, True, 5),  # the first five of the six
    ],
)
def test_calls_to_supply_what_is_missing_for_six_passages(
    missing: tuple[Missing, ...], name: str, judge: EvaluatorCard, writer: bool, calls: int
) -> None:
    assert calls_needed(missing, policy(name), 6, judge, writer=writer) == calls


def test_a_later_question_of_a_conversation_may_cost_one_call_more() -> None:
    first = budget(policy("two-signal"), FREE, 6, writer=True, searches=True)
    later = budget(policy("two-signal"), FREE, 6, writer=True, searches=True, condenses=True)
    assert {name: (one.least, one.most + 1) for name, one in first.items()} == {
        name: (one.least, one.most) for name, one in later.items()
    }
    assert budget(policy("two-signal"), FREE, 6, writer=False, searches=True, condenses=True)[CORRECT] == Calls(0, 0)


def test_only_what_is_not_graded_costs_grades_and_a_judge_that_spares_calls_may_ask_nothing() -> None:
    judge = judging(1)
    missing = (Missing.GRADES,)
    assert [calls_needed(missing, policy("paper"), 6, judge, writer=True, ungraded=left) for left in (0, 2)] == [6, 2]
    sparing = replace(judge, spares_calls=True)
    made = [budget(policy("paper"), by, 6, writer=True, searches=False)[Action.CORRECT] for by in (judge, sparing)]
    assert [(one.least, one.most) for one in made] == [(7, 7), (1, 7)]
