"""The web: off, asked for first, or searched at once; and what the record and the answer say of each outcome."""

from __future__ import annotations

import pytest

from crag_core import stages
from crag_core.errors import ModelUnavailable
from crag_core.pipeline import approve, is_waiting, refuse
from crag_core.policy import Policy, Route
from crag_core.protocols import WebReply
from crag_core.run import Run, WebMode
from crag_core.trace import Trace
from crag_core.types import Action, AnswerState, StepState, WebOutcome
from tests.fakes import QUESTION, WEB_QUERY, Bench, Diary, FakeModel, changed, step_names


def waiting(best: float = 0.5) -> tuple[Bench, Trace]:
    bench = Bench(best=best, model=FakeModel(), web=WebMode.ASK)
    return bench, bench.pipeline.run(QUESTION)


# --- off ------------------------------------------------------------------------------------------------------------


def test_off_asks_nobody_and_answers_from_the_passages() -> None:
    bench = Bench(best=0.5, model=FakeModel(), web=WebMode.OFF)
    trace = bench.pipeline.run(QUESTION)
    assert trace.web is not None and trace.answer is not None
    assert (trace.web.outcome, trace.web.query) == (WebOutcome.OFF, "")
    assert bench.counts["rewrite"] == bench.counts["search"] == 0
    assert ("rewrite", StepState.SKIPPED) in [(step.name, step.state) for step in trace.steps]
    assert trace.answer.state is AnswerState.COMPLETE


def test_off_with_nothing_usable_says_why_there_is_no_answer() -> None:
    bench = Bench(best=0.1, model=FakeModel(), web=WebMode.OFF)
    trace = bench.pipeline.run(QUESTION)
    assert trace.answer is not None
    assert trace.answer.state is AnswerState.CANNOT_ANSWER
    assert "best score 0.10 is below lower 0.40" in trace.answer.message
    assert "web search is off" in trace.answer.message
    assert bench.counts["answer"] == 0


def test_correct_does_not_even_note_that_the_web_is_off() -> None:
    assert Bench(best=0.9, web=WebMode.OFF).pipeline.run(QUESTION).web is None


# --- ask ------------------------------------------------------------------------------------------------------------


def test_ask_sends_nothing_before_approval() -> None:
    bench, trace = waiting()
    assert is_waiting(trace)
    assert trace.web is not None and trace.web.query == WEB_QUERY
    assert (trace.answer, trace.context) == (None, None)
    assert (trace.steps[-1].name, trace.steps[-1].state) == ("rewrite", StepState.WAITING)
    assert trace.failure is None
    assert bench.counts["search"] == bench.counts["answer"] == 0


def test_resuming_without_a_word_still_waits_and_asks_nobody() -> None:
    bench, trace = waiting()
    bench.forget_counts()
    assert bench.pipeline.resume(trace) == trace
    assert set(bench.counts.values()) == {0}


def test_search_itself_sends_nothing_that_was_not_approved() -> None:
    bench, trace = waiting()
    for unapproved in (trace, refuse(trace)):
        assert stages.search(unapproved, bench.pipeline.parts, Run()) is None
    assert bench.searcher.asked == []


def test_approved_query_is_sent_as_it_stands() -> None:
    bench, trace = waiting()
    done = bench.pipeline.resume(approve(trace, WEB_QUERY))
    assert bench.searcher.asked == [(WEB_QUERY, 5)]
    assert done.web is not None and done.answer is not None
    assert (done.web.outcome, done.web.query_by) == (WebOutcome.USED, "rewritten by fake-model")
    assert done.answer.state is AnswerState.COMPLETE
    assert bench.counts["retrieve"] == bench.counts["rewrite"] == 1
    assert step_names(done)[-4:] == ["search", "grade web", "assemble", "answer"]


def test_edited_query_is_sent_and_credited_to_the_user() -> None:
    bench, trace = waiting()
    done = bench.pipeline.resume(approve(trace, "Vennick harbour"))
    assert bench.searcher.asked == [("Vennick harbour", 5)]
    assert done.web is not None and done.web.query_by == "edited by you"


@pytest.mark.parametrize(("best", "state"), [(0.5, AnswerState.COMPLETE), (0.1, AnswerState.CANNOT_ANSWER)])
def test_refused_search_is_never_made(best: float, state: AnswerState) -> None:
    bench, trace = waiting(best)
    done = bench.pipeline.resume(refuse(trace))
    assert bench.searcher.asked == []
    assert done.web is not None and done.answer is not None
    assert (done.web.outcome, done.answer.state) == (WebOutcome.REFUSED, state)
    assert state is AnswerState.COMPLETE or "you refused the web search" in done.answer.message


@pytest.mark.parametrize("give_word", [lambda trace: approve(trace, "x"), refuse])
def test_only_a_waiting_run_takes_a_word(give_word: object) -> None:
    done = Bench().pipeline.run(QUESTION)
    with pytest.raises(ValueError, match="does not wait"):
        give_word(done)  # type: ignore[operator]


def test_correct_in_ask_mode_does_not_wait() -> None:
    trace = Bench(best=0.9, web=WebMode.ASK).pipeline.run(QUESTION)
    assert not is_waiting(trace) and trace.answer is not None


def test_stop_between_approval_and_search_keeps_the_approval() -> None:
    bench, trace = waiting()
    run = Run()
    run.cancel.set()
    stopped = bench.pipeline.resume(approve(trace, WEB_QUERY), run)
    assert bench.searcher.asked == [] and stopped.web is not None
    assert stopped.web.outcome is WebOutcome.APPROVED
    assert bench.pipeline.resume(stopped).answer is not None
    assert len(bench.searcher.asked) == 1


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


@pytest.mark.parametrize(("outcome", "words"), FAILURES)
def test_failed_search_leaves_ambiguous_with_its_passages(outcome: WebOutcome, words: str) -> None:
    trace = Bench(best=0.5, model=FakeModel(), reply=WebReply(outcome, "Fake search")).pipeline.run(QUESTION)
    assert trace.web is not None and trace.answer is not None
    assert (trace.web.outcome, trace.answer.state) == (outcome, AnswerState.COMPLETE)
    assert trace.context == ("p1#0",)


def keeping_originals() -> Policy:
    discard = Route("Irrelevant", changed("paper").incorrect.passages, changed("paper").incorrect.web)
    return changed(
        "paper", incorrect=Route(discard.label, discard.passages, discard.web, keep_original_without_web=True)
    )


def test_policy_may_fall_back_to_the_passages_with_a_warning() -> None:
    bench = Bench(keeping_originals(), best=0.1, model=(model := FakeModel()), reply=WebReply(WebOutcome.EMPTY, "F"))
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.decision.action is Action.INCORRECT
    assert trace.context == ("p1", "p2", "p3")
    assert "in the morning" in model.asked[-1][1][1][1]


def test_web_text_below_the_cutoff_is_not_used_and_that_is_said() -> None:
    bench = Bench(best=0.1)
    bench.strip_evaluator.scoring = lambda strip: 0.0
    trace = bench.pipeline.run(QUESTION)
    assert trace.web is not None and trace.answer is not None
    assert trace.web.outcome is WebOutcome.USED
    assert "no web result was kept" in trace.answer.message
    assert "The web answered, but" in trace.answer.message


# --- the rewrite ----------------------------------------------------------------------------------------------------


def test_model_that_fails_at_the_rewrite_does_not_cost_the_search() -> None:
    away = ModelUnavailable("Ollama does not answer.", hint="Start it.")
    bench = Bench(best=0.5, model=FakeModel(rewrite=away))
    trace = bench.pipeline.run(QUESTION)
    assert bench.searcher.asked == [("ferry Vennick leave", 5)]
    step = next(step for step in trace.steps if step.name == "rewrite")
    assert step.summary == "“ferry Vennick leave”, the question's keywords, since: Ollama does not answer."
    assert step.usage.calls == 1


@pytest.mark.parametrize("reply", ["", "<think>What do they want?</think>", "\n  \n"])
def test_rewrite_without_a_query_falls_back_to_keywords(reply: str) -> None:
    bench = Bench(best=0.5, model=FakeModel(rewrite=reply))
    trace = bench.pipeline.run(QUESTION)
    assert bench.searcher.asked == [("ferry Vennick leave", 5)]
    step = next(step for step in trace.steps if step.name == "rewrite")
    assert "since fake-model gave no query" in step.summary


def test_stop_during_the_rewrite_keeps_the_grades() -> None:
    bench, run = Bench(best=0.5, model=FakeModel()), Run(diary := Diary())
    diary.at["route"] = run.cancel.set
    # A CORRECT run would have nothing to rewrite; here the stop comes before "extract", which has nothing to do.
    stopped = bench.pipeline.run(QUESTION, run)
    assert stopped.failure is not None and stopped.failure.state is StepState.STOPPED
    assert bench.counts["rewrite"] == 0
    bench.forget_counts()
    done = bench.pipeline.resume(stopped)
    assert bench.counts["grade"] == 2 and bench.counts["rewrite"] == 1
    assert [step.state for step in done.steps] == [StepState.DONE] * 9, "a stop that is over leaves no mark"
