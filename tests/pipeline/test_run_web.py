"""The web: off, asked for first, or searched at once; and what the record and the answer say of each outcome."""

from dataclasses import replace

import pytest

from crag_core.base.protocols import WebReply
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.steps import StepState
from crag_core.base.types.web import WebOutcome
from crag_core.pipeline.run import Cooldown, WebMode
from crag_core.pipeline.web_stages import approve, is_waiting
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, WEB_QUERY, Bench, FakeModel, Hand, card, changed, found_web, step_names


def waiting() -> tuple[Bench, Trace]:
    bench = Bench(best=0.5, model=FakeModel(), web=WebMode.ASK)
    return bench, bench.pipeline.run(QUESTION)


# --- off ------------------------------------------------------------------------------------------------------------


def test_off_asks_nobody_and_answers_from_the_passages() -> None:
    bench = Bench(best=0.5, model=FakeModel(), web=WebMode.OFF)
    trace = bench.pipeline.run(QUESTION)
    assert trace.web is not None and trace.answer is not None
    assert (trace.web.outcome, trace.web.query) == (WebOutcome.OFF, "")
    assert bench.counts["phrases"] == bench.counts["search"] == 0
    assert ("rewrite", StepState.SKIPPED) in [(step.name, step.state) for step in trace.steps]
    assert trace.answer.state is AnswerState.COMPLETE


def test_off_with_nothing_usable_says_why_there_is_no_answer() -> None:
    bench = Bench(best=0.1, model=FakeModel(), web=WebMode.OFF)
    trace = bench.pipeline.run(QUESTION)
    assert trace.answer is not None
    assert trace.answer.state is AnswerState.CANNOT_ANSWER
    assert "retrieved chunks were judged irrelevant, and web search is off" in trace.answer.message
    assert bench.counts["answer"] == 0


# --- ask ------------------------------------------------------------------------------------------------------------


def test_ask_sends_nothing_before_approval() -> None:
    bench, trace = waiting()
    assert is_waiting(trace)
    assert trace.web is not None and trace.web.query == WEB_QUERY
    assert (trace.answer, trace.context) == (None, None)
    waits = [step.name for step in trace.steps if step.state is StepState.WAITING]
    assert waits == ["rewrite"] and "search" not in step_names(trace)
    assert trace.failure is None
    assert bench.counts["search"] == bench.counts["answer"] == 0


def test_approved_query_is_sent_as_it_stands() -> None:
    bench, trace = waiting()
    done = bench.pipeline.resume(approve(trace, WEB_QUERY))
    assert bench.searcher.asked == [(WEB_QUERY, 5)]
    assert done.web is not None and done.answer is not None
    assert (done.web.outcome, done.web.query_by) == (WebOutcome.USED, "written by fake-model")
    assert done.answer.state is AnswerState.COMPLETE
    assert bench.counts["retrieve"] == bench.counts["phrases"] == 1
    assert step_names(done)[-4:] == ["search", "grade web", "assemble", "answer"]


# --- outcomes -------------------------------------------------------------------------------------------------------

FAILURES = [
    (WebOutcome.EMPTY, "the web search found nothing"),
    (WebOutcome.FAILED, "the web search failed"),
    (WebOutcome.RATE_LIMITED, "the web search was rate-limited"),
    (WebOutcome.TIMED_OUT, "the web search timed out"),
]


@pytest.mark.parametrize(("outcome", "words"), FAILURES)
def test_failed_search_is_told_in_record_and_answer(outcome: WebOutcome, words: str) -> None:
    reply = WebReply(outcome, "Fake search", message=f"Fake search: {outcome}.")
    bench = Bench(best=0.1, model=FakeModel(), reply=reply)
    trace = bench.pipeline.run(QUESTION)
    assert trace.web is not None and trace.answer is not None
    assert (trace.web.outcome, trace.web.message, trace.web.passages) == (outcome, reply.message, ())
    assert next(step for step in trace.steps if step.name == "search").summary == reply.message
    assert "grade web" not in step_names(trace)
    assert trace.answer.state is AnswerState.CANNOT_ANSWER
    assert words in trace.answer.message
    assert bench.counts["answer"] == 0


# --- a policy's time for the web -------------------------------------------------------------------------------------


def slow(seconds: float | None, best: float = 0.5) -> Bench:
    """A bench whose provider answers only when it is told to give up, at the latest after a minute."""
    bench = Bench(changed("paper", web_seconds=seconds), best=best, model=FakeModel())
    bench.searcher.before = lambda cancel: cancel.wait(60.0)
    return bench


@pytest.mark.parametrize(("best", "state"), [(0.5, AnswerState.COMPLETE), (0.1, AnswerState.CANNOT_ANSWER)])
def test_search_that_takes_too_long_is_given_up_and_the_run_goes_on(best: float, state: AnswerState) -> None:
    bench = slow(0.05, best)
    trace = bench.pipeline.run(QUESTION)
    assert trace.web is not None and trace.answer is not None and trace.failure is None
    assert (trace.web.outcome, trace.web.query) == (WebOutcome.TIMED_OUT, WEB_QUERY)
    step = next(step for step in trace.steps if step.name == "search")
    assert step.summary == trace.web.message == "The web did not answer within the 0.05 s that this policy allows."
    assert trace.answer.state is state
    assert state is AnswerState.COMPLETE or "the web search timed out" in trace.answer.message
    assert Trace.from_json(trace.to_json()) == trace


# --- the time between two searches -----------------------------------------------------------------------------------


def cooling(best: float = 0.5, reply: WebReply | None = None) -> tuple[Bench, Hand]:
    """A policy that wants 30 s between two searches, after the first one."""
    watch = Hand()
    policy = changed("paper", web_cooldown=30.0)
    bench = Bench(policy, best=best, model=FakeModel(), reply=reply or found_web(), pause=Cooldown(watch))
    bench.pipeline.run(QUESTION)
    bench.forget_counts()
    return bench, watch


@pytest.mark.parametrize("best", [0.5, 0.1])
def test_second_search_within_the_cooldown_is_not_made_and_not_even_rewritten(best: float) -> None:
    bench, watch = cooling(best)
    watch.now += 10.0
    trace = bench.pipeline.run(QUESTION)
    assert bench.counts["search"] == bench.counts["phrases"] == 0
    assert trace.web is not None and trace.answer is not None and trace.failure is None
    assert (trace.web.outcome, trace.web.query) == (WebOutcome.COOLING, "")
    step = next(step for step in trace.steps if step.name == "rewrite")
    assert step.state is StepState.SKIPPED
    assert step.summary == "The last search was just made; this policy waits 30 s, 20 s are left."
    if best == 0.1:
        assert trace.answer.state is AnswerState.CANNOT_ANSWER
        assert "the last search was just made" in trace.answer.message
    else:
        assert trace.answer.text
    assert Missing.WEB in reroute(trace, trace.settings.policy).missing
    assert trace.corrections is not None and "web_search" not in [one.kind for one in trace.corrections]


@pytest.mark.parametrize(
    ("reply", "searches"),
    [
        (replace(found_web(), from_cache=True), 1),
        (WebReply(WebOutcome.EMPTY, "F"), 0),
        (WebReply(WebOutcome.RATE_LIMITED, "F"), 0),
    ],
)
def test_only_what_left_the_machine_starts_the_cooldown(reply: WebReply, searches: int) -> None:
    bench, _ = cooling(reply=reply)
    bench.pipeline.run(QUESTION)
    assert bench.counts["search"] == searches


def test_correct_neither_waits_nor_starts_the_cooldown() -> None:
    pause = Cooldown(Hand())
    trace = Bench(changed("paper", web_cooldown=30.0), best=0.9, pause=pause).pipeline.run(QUESTION)
    assert trace.web is None and pause.left(30.0) == 0.0


@pytest.mark.parametrize(("refines", "calls", "graded"), [(True, True, 2), (False, True, 0), (False, False, 2)])
def test_a_model_judges_web_results_only_where_the_policy_refines_them(refines: bool, calls: bool, graded: int) -> None:
    of_web = changed("paper", web_refine=refines)
    bench = Bench(of_web, best=0.1, judge=card(calls_model=calls), model=FakeModel(), reply=found_web(2))
    trace = bench.pipeline.run(QUESTION)
    assert trace.answer is not None and len(trace.web_grades or ()) == graded
