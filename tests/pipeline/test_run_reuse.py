"""Scored once, decided as often as you like: what another policy, evaluator or model asks anew, and what it reuses."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.protocols import WebReply
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Usage
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import WebQuery
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import WebMode
from crag_core.pipeline.web_stages import approve
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, Bench, FakeEvaluator, FakeModel, Scoring, card, found_web, passages, step_names


def carried_on(bench: Bench, trace: Trace, pipeline: Pipeline) -> Trace:
    bench.forget_counts()
    return pipeline.resume(pipeline.adopt(trace))


# --- adopt ----------------------------------------------------------------------------------------------------------


def test_another_evaluator_grades_everything_anew_but_retrieves_scores_and_searches_nothing() -> None:
    bench = Bench(best=0.5, model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    other = FakeEvaluator(lambda passage: 0.45, card("other"))
    again = carried_on(bench, trace, bench.under(parts={"evaluator": other}, evaluator=other.card))
    assert bench.counts == {"answer": 1}
    assert other.asked == [("p1", "p2", "p3"), ("web-1", "web-2")]
    assert again.grades is not None and {grade.score for grade in again.grades} == {0.45}
    assert again.web is not None and trace.web is not None
    assert again.web == trace.web and {grade.score for grade in again.web_grades or ()} == {0.45}
    assert again.usage.calls == 2, "the rewrite that the web results came from, and the new answer"


@pytest.mark.parametrize("outcome", [WebOutcome.TIMED_OUT, WebOutcome.FAILED, WebOutcome.RATE_LIMITED])
def test_search_that_failed_is_made_again_and_its_steps_are_not_kept(outcome: WebOutcome) -> None:
    bench = Bench(best=0.5, model=FakeModel(), reply=WebReply(outcome, "Fake search", message="Nothing."))
    trace = bench.pipeline.run(QUESTION)
    bench.searcher.reply = found_web()
    again = carried_on(bench, trace, bench.pipeline)
    assert bench.counts == {"grade": 2, "strips": 2, "search": 1, "phrases": 1, "answer": 1}
    assert step_names(again).count("search") == step_names(again).count("rewrite") == 1


def test_a_waiting_query_goes_where_the_same_would_not_be_written_again() -> None:
    bench = Bench(best=0.5, web=WebMode.ASK, model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    policy = bench.pipeline.settings.policy
    as_asked = replace(policy, web=replace(policy.web, query=WebQuery.QUESTION))
    assert trace.web is not None and trace.web.query != QUESTION
    adopted = bench.under(policy=as_asked).adopt(trace)
    assert adopted.web is None and trace.web == bench.pipeline.adopt(trace).web


def test_adopting_a_run_that_broke_off_asks_for_what_it_lacks() -> None:
    away = {id: Grade(id, None, cause="away", retryable=True, usage=Usage(1)) for id in ("p5", "p6")}
    bench = Bench(judge=card(calls_model=True), found=passages(6), scoring=lambda p: away.get(p.id, 0.9))
    broken = bench.pipeline.run(QUESTION)
    assert broken.failure is not None
    away.clear()
    again = carried_on(bench, broken, bench.pipeline)
    assert bench.evaluator.graded == ["p5", "p6"]
    assert again.failure is None and again.answer is not None and again.answer.state is AnswerState.COMPLETE


def away_once() -> Scoring:
    """A judge that does not answer for the first three passages, and then does."""
    asked = itertools.count()

    def score(passage: Passage) -> Grade | float:
        if next(asked) < 3:
            return Grade(passage.id, None, cause="away", retryable=True, usage=Usage(1), error="ModelMissing")
        return 0.9

    return score


# --- the same run, or one of its own --------------------------------------------------------------------------------


def test_an_unfinished_run_goes_on_as_the_same_run() -> None:
    bench = Bench(best=0.5, web=WebMode.ASK, model=FakeModel())
    waiting = bench.pipeline.run(QUESTION)
    done = carried_on(bench, approve(waiting, "ferry"), bench.pipeline)
    assert (done.id, done.created) == (waiting.id, waiting.created)
    assert done.own_usage == done.usage, "nobody else has paid for it"
    assert not any(step.taken_over for step in done.steps)


def test_what_somebody_else_began_is_taken_over_as_a_run_of_its_own() -> None:
    bench = Bench(judge=card(calls_model=True), model=FakeModel(), scoring=away_once())
    broken = bench.pipeline.run(QUESTION)
    done = bench.pipeline.resume(bench.pipeline.adopt(broken, as_new=True))
    assert done.id != broken.id
    assert done.usage.calls == done.own_usage.calls == len(bench.found) + 1, "the broken step's cost stays where it was"
    (grading,) = (step for step in done.steps if step.name == "grade")
    assert not grading.taken_over


@pytest.mark.parametrize("changes", [{"top_k": 3}, {"embedding": "another"}, {"collection": "harbour"}])
def test_another_retrieval_starts_anew(changes: dict[str, Any]) -> None:
    bench = Bench(best=0.9)
    trace = bench.pipeline.run(QUESTION)
    again = carried_on(bench, trace, bench.under(**changes))
    assert bench.counts["retrieve"] == bench.counts["grade"] // 3 == 1
    assert again.id != trace.id and again.question == trace.question
