"""Runs under edits, and second opinions: what is asked anew, what is reused, and what never reaches the answer."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace

import pytest

from crag_core.base.errors import EvaluatorUnavailable, ModelMissing
from crag_core.base.types.answers import AnswerState, Support
from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Grade, Opinion
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import StepName, StepState, Usage
from crag_core.observability.audit_log import find_events
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import Run, WebMode
from crag_core.trace.edits import measured
from crag_core.trace.opinions import disagreement, with_evaluator
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from tests.fakes import (
    QUESTION,
    USELESS,
    Bench,
    Diary,
    FakeEvaluator,
    FakeModel,
    by_id,
    card,
    changed,
    passage,
    passages,
    step_names,
)

GRADE, SECOND_OPINION = StepName.GRADE, StepName.SECOND_OPINION

JUDGE = card("judge", calls_model=True)


def edit(trace: Trace, *, drop: str = "", pin: str = "") -> Trace:
    return replace(trace, edits=Edits(tuple(drop.split()), tuple(pin.split())))


def carried_on(bench: Bench, trace: Trace, pipeline: Pipeline | None = None) -> Trace:
    """Generated from the record: adopted and resumed, with all counts of before forgotten."""
    pipeline = pipeline or bench.pipeline
    bench.forget_counts()
    return pipeline.resume(pipeline.adopt(trace))


def told(model: FakeModel, kind: str = "answer") -> str:
    """What the model was told when it was last asked for this."""
    return next(messages[-1][1] for asked, messages in reversed(model.asked) if asked == kind)


def named(*marks: str) -> tuple[Passage, ...]:
    """Passages of one sentence each that can be told apart."""
    return tuple(passage(n, f"The {mark} ferry leaves at {n} sharp.") for n, mark in enumerate(marks, start=1))


# --- generating under edits -----------------------------------------------------------------------------------------


def test_an_answer_without_a_dropped_passage_asks_for_nothing_but_itself() -> None:
    model = FakeModel()
    bench = Bench(best=0.5, model=model, found=named("red", "green", "blue"))
    trace = bench.pipeline.run(QUESTION)
    again = carried_on(bench, edit(trace, drop="p2"))
    assert bench.counts == {"answer": 1}
    assert again.edits == Edits(("p2",)) and again.id != trace.id
    assert again.context == ("p1#0", "p3#0", "web-1#0"), "both results say the same"
    assert "red" in told(model) and "green" not in told(model)
    facts = ("passages", "grades", "strips", "web", "signals")
    assert all(getattr(again, name) == getattr(trace, name) for name in facts), "facts stay raw"
    assert reroute(again, again.settings.policy).answer == again.answer
    assert reroute(edit(again), again.settings.policy).answer is None, "it was written from other evidence"


def test_decision_and_corrections_are_recorded_as_the_edits_have_them() -> None:
    bench = Bench(scoring=by_id(p1=0.9, p2=0.5, p3=0.1), found=named("red", "green", "blue"))
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.decision.action is Action.CORRECT and trace.web is None
    again = carried_on(bench, edit(trace, drop="p1"))
    assert bench.counts == {"search": 1, "grade": 2, "strips": 2}, "the web is asked for the first time, and graded"
    assert again.decision is not None and again.decision.action is Action.AMBIGUOUS
    assert "0.50" in again.decision.reason
    later = carried_on(bench, edit(again, drop="p1 web-1"))
    assert not bench.counts
    search = next(one for one in later.corrections or () if one.kind is CorrectionKind.WEB_SEARCH)
    assert search.reason.endswith("1 results") and summarize(later).final_count == 3
    assert not {"p1", "web-1"} & {piece.partition("#")[0] for piece in later.context or ()}


def test_taking_edits_back_brings_the_first_answer_back_from_the_record_that_holds_it() -> None:
    bench = Bench(scoring=by_id(p1=0.9, p2=0.5, p3=0.1))
    trace = bench.pipeline.run(QUESTION)
    again = carried_on(bench, edit(carried_on(bench, edit(trace, drop="p1"))))
    assert not bench.counts and (again.context, again.answer) == (trace.context, trace.answer)


def test_a_passage_stays_dropped_when_another_retrieval_finds_it_again() -> None:
    model, found = FakeModel(), named("red", "green", "blue", "black")
    bench = Bench("agentic", scoring=by_id(p1=0.1, p2=0.1, p3=0.1, p4=0.9), model=model)
    bench.retriever.finding = lambda query, engine: found[:3] if query == QUESTION and engine == "hybrid" else found
    trace = bench.pipeline.correct(bench.pipeline.begin(QUESTION))
    assert trace.rounds, "nothing good was found at first"
    fresh = replace(trace, rounds=(), grades=(trace.grades or ())[:3], decision=None, earlier=(), steps=())
    again = carried_on(bench, edit(fresh, drop="p4"))
    assert bench.retriever.asked, "the rounds are made again"
    assert any(p.id == "p4" for one in again.rounds for p in one.retrievals[0].passages), "facts stay raw"
    assert "p4" not in bench.evaluator.graded and "p4" not in bench.strip_evaluator.graded
    assert all("black" not in messages[-1][1] for _, messages in model.asked)
    assert again.context is not None and not any(piece.startswith("p4") for piece in again.context)


def test_an_expansion_does_not_bring_a_dropped_passage_back() -> None:
    bench = Bench("paper", found=named("red", "green", "blue"))
    taken = bench.pipeline.run(QUESTION)
    edits = measured(taken, Edits(("p2",)), bench.pipeline.parts.meter)
    expanding = bench.under(policy=changed("heuristic", lower=0.0, upper=1.0))
    trace = carried_on(bench, replace(taken, edits=edits), expanding)
    assert bench.counts["retrieve"] == 2 and trace.edits == edits
    assert "p2" in {p.id for p in trace.rounds[0].retrievals[0].passages}
    assert {piece.partition("#")[0] for piece in trace.context or ()} == {"p1", "p3"}


def test_results_that_are_dropped_are_neither_graded_nor_scored() -> None:
    bench = Bench(best=0.5)
    waiting = bench.under(web_mode=WebMode.OFF, parts={"searcher": None}).run(QUESTION)
    again = carried_on(bench, edit(waiting, drop="web-2"))
    assert bench.evaluator.graded == ["web-1"] and again.web is not None and len(again.web.passages) == 2
    assert bench.strip_evaluator.graded == ["web-1#0"]
    back = carried_on(bench, edit(again))
    assert bench.counts == {"grade": 1, "strips": 1}, "put back, only the other one is graded"
    assert back.web is not None and [g.passage_id for g in back.web.grades or ()] == ["web-1", "web-2"]


def test_with_every_passage_dropped_it_says_that_it_cannot_answer() -> None:
    bench = Bench(best=0.9, web=WebMode.OFF, model=FakeModel())
    again = carried_on(bench, edit(bench.pipeline.run(QUESTION), drop="p1 p2 p3"))
    assert not bench.counts
    assert again.answer is not None and again.answer.state is AnswerState.CANNOT_ANSWER
    assert (again.context, again.failure) == ((), None)
    searched = Bench(best=0.1)
    empty = carried_on(searched, edit(searched.pipeline.run(QUESTION), drop="web-1 web-2"))
    assert empty.answer is not None and "the web search found nothing" in empty.answer.message


def test_a_pinned_passage_is_quoted_first() -> None:
    bench = Bench(found=(passage(1), passage(2, USELESS)))
    trace = bench.pipeline.run(QUESTION)
    assert trace.answer is not None and USELESS not in trace.answer.text
    again = carried_on(bench, edit(trace, pin="p2"))
    assert not bench.counts
    assert again.answer is not None and again.answer.text.startswith(f"“{USELESS}”")


def test_a_streamed_answer_is_written_under_the_edits_too() -> None:
    bench = Bench(found=(passage(1), passage(2, USELESS)))
    trace = bench.pipeline.adopt(edit(bench.pipeline.run(QUESTION), pin="p2"))
    *pieces, done = bench.pipeline.stream_answer(bench.pipeline.correct(trace))
    assert isinstance(done, Trace) and (done.passages, done.edits) == (trace.passages, trace.edits)
    assert done.answer is not None and done.answer.text == "".join(map(str, pieces))
    assert done.answer.text.startswith(f"“{USELESS}”")


def test_no_judge_is_asked_about_a_pinned_passage() -> None:
    bench = Bench(judge=JUDGE, best=0.5, model=FakeModel())
    trace = edit(replace(bench.pipeline.run(QUESTION), grades=None, web=None), pin="p2")
    assert carried_on(bench, trace).failure is None
    assert bench.evaluator.graded == ["p1", "p3"]
    every = carried_on(bench, edit(trace, pin="p1 p2 p3"))
    assert bench.counts == {"answer": 1}
    assert every.grades == () and every.decision is not None and every.decision.score == 1.0
    unpinned = carried_on(bench, edit(every))
    assert bench.evaluator.graded[:3] == ["p1", "p2", "p3"]
    assert unpinned.decision is not None and unpinned.decision.score == 0.5


def test_no_judge_is_asked_about_a_pinned_result() -> None:
    bench = Bench(judge=JUDGE, best=0.5)
    trace = replace(bench.pipeline.run(QUESTION), context=None)
    assert trace.web is not None
    again = carried_on(bench, edit(replace(trace, web=replace(trace.web, grades=None)), pin="web-1"))
    assert bench.evaluator.graded == ["web-2"]
    assert again.web is not None and [grade.passage_id for grade in again.web.grades or ()] == ["web-2"]


def test_grading_that_costs_nothing_goes_on_behind_a_pin() -> None:
    bench = Bench(best=0.5, web=WebMode.OFF)
    trace = replace(bench.pipeline.run(QUESTION), grades=None)
    again = carried_on(bench, edit(trace, pin="p2"))
    assert bench.evaluator.graded == ["p1", "p2", "p3"]
    assert [grade.score for grade in again.grades or ()] == [0.5, 0.5, 0.5], "facts stay raw"


def test_no_model_extracts_from_what_is_pinned_or_dropped() -> None:
    model = FakeModel()
    bench = Bench("worst-chunk", best=0.5, model=model, found=named("red", "green", "blue"), web=WebMode.OFF)
    trace = bench.pipeline.correct(replace(bench.pipeline.begin(QUESTION), edits=Edits(("p1",), ("p2",))))
    assert [messages[-1][1].count("blue") for kind, messages in model.asked if kind == "extract"] == [1]
    assert [one.passage_id for one in trace.extractions or ()] == ["p3"]
    assert trace.context == ("p2#0",), "nothing was found in p3"
    assert Missing.EXTRACTION not in reroute(trace, trace.settings.policy).missing


def test_every_piece_that_a_generated_answer_was_written_from_is_in_the_record() -> None:
    bench = Bench(changed("heuristic", lower=0.0, upper=1.0), found=named("red", "green", "blue"))
    taken = bench.pipeline.run(QUESTION)
    bench.retriever.finding = lambda query, engine: (passage(9), *bench.found)
    again = carried_on(bench, edit(replace(taken, rounds=()), pin="p9"))
    assert again.rounds and "p9" in (again.context or ())
    assert "p9" in {strip.passage_id for strip in again.strips or ()}
    assert Trace.from_json(again.to_json()) == again


def test_edits_go_with_their_passages() -> None:
    bench = Bench()
    trace = edit(bench.pipeline.run(QUESTION), drop="p1", pin="p2")
    assert bench.pipeline.adopt(trace).edits == trace.edits
    assert bench.under(top_k=3).adopt(trace).edits == Edits()


def test_an_adopted_run_has_no_support_of_an_answer_that_it_does_not_have() -> None:
    bench = Bench()
    trace = replace(bench.pipeline.run(QUESTION), support=(Support(0, 1, 0.5),))
    assert (bench.pipeline.adopt(trace).answer, bench.pipeline.adopt(trace).support) == (None, None)


def test_the_audit_log_tells_what_was_decided_under_the_edits() -> None:
    bench, diary = Bench(scoring=by_id(p1=0.9, p2=0.1, p3=0.1)), Diary()
    trace = bench.pipeline.adopt(edit(bench.pipeline.run(QUESTION), drop="p1"))
    bench.pipeline.resume(trace, Run(diary))
    events = [event for step, now in zip(diary.done, diary.traces, strict=True) for event in find_events(step, now)]
    assert [event["passage"] for event in events if event["event"] == "evidence_removed"] == ["p2", "p3"]
    assert [event["action"] for event in events if event["event"] == "decision"] == ["INCORRECT"]


# --- a second opinion -----------------------------------------------------------------------------------------------


def second(bench: Bench, evaluator: FakeEvaluator, **settings: str) -> Pipeline:
    return bench.under(parts={"evaluator": evaluator}, evaluator=evaluator.card, **settings)


def other_judge(**scores: float | None) -> FakeEvaluator:
    return FakeEvaluator(by_id(**scores), JUDGE)


def test_a_second_opinion_grades_what_was_looked_at_and_what_the_web_gave() -> None:
    bench, other = Bench(best=0.5, model=FakeModel()), other_judge(p1=0.9, p2=0.8, p3=0.7)
    trace, diary = bench.pipeline.run(QUESTION), Diary()
    bench.forget_counts()
    heard = second(bench, other).second_opinion(trace, Run(diary))
    assert not bench.counts and other.asked == [("p1", "p2", "p3"), ("web-1", "web-2")]
    (opinion,) = heard.opinions
    assert (opinion.evaluator, opinion.writer) == (JUDGE, "fake-model")
    assert [(g.passage_id, g.score) for g in opinion.grades] == [
        ("p1", 0.9), ("p2", 0.8), ("p3", 0.7), ("web-1", 0.5), ("web-2", 0.5),
    ]  # fmt: skip
    assert replace(heard, opinions=(), steps=trace.steps) == trace, "the record only grows"
    step = heard.steps[-1]
    assert (step.name, step.state, step.usage.calls) == (SECOND_OPINION, StepState.DONE, 5)
    assert step.summary == f"5 of 5 chunks graded by {JUDGE.title.lower()}"
    assert (diary.begun, diary.done) == ([SECOND_OPINION], [step])
    assert diary.progress == [(SECOND_OPINION, 0, 5), (SECOND_OPINION, 3, 5), (SECOND_OPINION, 5, 5)]


def test_an_evaluator_without_a_model_does_not_change_whose_answer_it_is() -> None:
    bench, other = Bench(best=0.9, model=FakeModel()), FakeEvaluator(by_id(), card("trained"))
    heard = second(bench, other, writer="another").second_opinion(bench.pipeline.run(QUESTION))
    swapped = with_evaluator(heard, "trained")
    assert swapped is not None and swapped.settings.writer == "fake-model"


def test_nothing_is_graded_twice() -> None:
    bench, other = Bench(best=0.5), other_judge()
    heard = second(bench, other).second_opinion(bench.pipeline.run(QUESTION))
    assert second(bench, other).second_opinion(heard) == heard and len(other.asked) == 2
    assert bench.pipeline.second_opinion(heard) is heard, "the evaluator of the run has no second one"
    half = replace(heard, opinions=(replace(heard.opinions[0], grades=heard.opinions[0].grades[1:]),))
    again = second(bench, other).second_opinion(half)
    assert other.asked[2:] == [("p1",)]
    assert again.opinions == heard.opinions


@pytest.mark.parametrize("changes", [{"writer": "another"}, {"prompts": "2"}])
def test_an_opinion_holds_for_its_model_and_prompt_only(changes: dict[str, str]) -> None:
    bench, other = Bench(best=0.9), other_judge(p1=0.9)
    heard = second(bench, other).second_opinion(bench.pipeline.run(QUESTION))
    other.scoring = by_id(p1=0.1)
    again = second(bench, other, **changes).second_opinion(heard)
    assert other.graded == ["p1", "p2", "p3"] * 2
    assert [one.grades[0].score for one in again.opinions] == ([0.9, 0.1] if "writer" in changes else [0.1])


def test_a_newer_version_of_an_evaluator_takes_the_place_of_the_older_one() -> None:
    old, new = (FakeEvaluator(by_id(), replace(card("trained"), version=version)) for version in "12")
    bench = Bench(best=0.9)
    heard = second(bench, old).second_opinion(bench.pipeline.run(QUESTION))
    again = second(bench, new).second_opinion(heard)
    assert new.graded == ["p1", "p2", "p3"] and [one.evaluator.version for one in again.opinions] == ["2"]


def test_what_is_dropped_is_not_judged_and_what_is_pinned_is() -> None:
    bench, other = Bench(best=0.5), other_judge()
    heard = second(bench, other).second_opinion(edit(bench.pipeline.run(QUESTION), drop="p1 web-1", pin="p2"))
    assert other.asked == [("p2", "p3"), ("web-2",)]
    second(bench, other).second_opinion(edit(heard))
    assert other.asked[2:] == [("p1",), ("web-1",)]


def test_a_stop_keeps_what_was_graded_and_the_run_has_not_broken_off() -> None:
    cancel, other = threading.Event(), other_judge()
    bench = Bench(best=0.5, found=passages(6))
    trace = bench.pipeline.run(QUESTION)
    other.before = lambda: cancel.set() if len(other.asked) == 2 else None
    stopped = second(bench, other).second_opinion(trace, Run(cancel=cancel))
    step = stopped.steps[-1]
    assert (step.state, step.summary) == (StepState.STOPPED, "stopped by you after 4 of 8 chunks")
    assert [g.passage_id for g in stopped.opinions[0].grades] == ["p1", "p2", "p3", "p4"]
    assert stopped.failure is None and stopped.answer == trace.answer
    other.before = lambda: None
    done = second(bench, other).second_opinion(stopped)
    assert other.asked[2:] == [("p5", "p6"), ("web-1", "web-2")]
    assert len(done.opinions[0].grades) == 8
    assert [(s.state, s.usage.calls) for s in done.steps if s.name == SECOND_OPINION] == [
        (StepState.STOPPED, 4),
        (StepState.DONE, 4),
    ]


def test_a_stop_before_anything_was_graded_leaves_no_opinion() -> None:
    cancel = threading.Event()
    cancel.set()
    bench, other = Bench(), other_judge()
    trace = bench.pipeline.run(QUESTION)
    stopped = second(bench, other).second_opinion(trace, Run(cancel=cancel))
    assert (stopped.opinions, other.asked) == ((), [])
    assert stopped.steps[:-1] == trace.steps and stopped.steps[-1].state is StepState.STOPPED


def test_an_evaluator_that_breaks_half_way_keeps_what_it_has_said() -> None:
    bench, other = Bench(best=0.5), FakeEvaluator(by_id(), card("trained"))
    trace = bench.pipeline.run(QUESTION)

    def break_at_the_web() -> None:
        if other.asked[-1][0].startswith("web"):
            raise EvaluatorUnavailable("Its file is gone.", hint="Put it back.")

    other.before = break_at_the_web
    heard = second(bench, other).second_opinion(trace)
    step = heard.steps[-1]
    assert (step.state, step.summary, step.hint) == (StepState.FAILED, "Its file is gone.", "Put it back.")
    assert step.error == "EvaluatorUnavailable" and heard.failure is None
    assert [g.passage_id for g in heard.opinions[0].grades] == ["p1", "p2", "p3"]


def test_a_judge_that_is_away_is_not_asked_on_and_can_be_asked_again() -> None:
    away = {"now": True}

    def score(one: Passage) -> Grade | float:
        gone = Grade(one.id, None, cause="away", retryable=True, usage=Usage(1), error="ModelMissing")
        return gone if away["now"] else 0.7

    bench, other = Bench(best=0.5, found=passages(6)), FakeEvaluator(score, JUDGE)
    heard = second(bench, other).second_opinion(bench.pipeline.run(QUESTION))
    assert len(other.asked) == 1 and heard.steps[-1].error == ModelMissing.__name__
    away["now"] = False
    again = second(bench, other).second_opinion(heard)
    assert {g.score for g in again.opinions[0].grades} == {0.7} and len(again.opinions[0].grades) == 8


def test_a_broken_opinion_is_not_completed_by_that_of_another_evaluator() -> None:
    broken, other = other_judge(), FakeEvaluator(by_id(), card("trained"))

    def raise_missing() -> None:
        raise ModelMissing("No such model.")

    broken.before = raise_missing
    bench = Bench()
    heard = second(bench, broken).second_opinion(bench.pipeline.run(QUESTION))
    again = second(bench, other).second_opinion(heard)
    assert [step.state for step in again.steps[-2:]] == [StepState.FAILED, StepState.DONE]
    assert second(bench, other).second_opinion(again) == again, "nor by one that has nothing more to say"


def test_where_nothing_was_retrieved_a_second_opinion_says_so() -> None:
    bench, other = Bench(found=(), web=WebMode.OFF), other_judge()
    heard = second(bench, other).second_opinion(bench.pipeline.run(QUESTION))
    assert (heard.opinions, other.asked, heard.steps[-1].state) == ((), [], StepState.SKIPPED)


# --- an opinion that decides ----------------------------------------------------------------------------------------


def test_a_run_decided_by_an_opinion_grades_nothing_again() -> None:
    bench, other = Bench(best=0.5, model=FakeModel()), other_judge(p1=0.1, p2=0.1, p3=0.1)
    trace = bench.pipeline.run(QUESTION)
    heard = second(bench, other).second_opinion(trace)
    other.asked.clear()
    again = carried_on(bench, heard, second(bench, other))
    assert bench.counts == {"answer": 1} and not other.asked
    assert again.decision is not None and again.decision.action is Action.INCORRECT
    assert again.settings.evaluator == JUDGE
    own = (*(trace.grades or ()), *((trace.web.grades if trace.web else None) or ()))
    assert again.opinions == (Opinion(bench.judge, "fake-model", own),)
    assert [step.usage.calls for step in again.steps if step.name == GRADE] == [5], "the cost goes with its grades"
    back = carried_on(bench, again, bench.pipeline)
    assert bench.counts == {"answer": 1} and back.grades == trace.grades and back.opinions == heard.opinions


def test_a_view_by_another_evaluator_can_be_generated_with_its_edits() -> None:
    bench, other = Bench(best=0.5, model=FakeModel()), other_judge(p1=0.9, p2=0.1, p3=0.1)
    heard = second(bench, other).second_opinion(bench.pipeline.run(QUESTION))
    view = with_evaluator(heard, "judge")
    assert view is not None
    other.asked.clear()
    again = carried_on(bench, edit(view, drop="p1"), second(bench, other))
    assert bench.counts == {"answer": 1} and not other.asked
    assert again.decision == reroute(edit(view, drop="p1"), again.settings.policy).decision
    assert again.decision is not None and again.decision.action is Action.INCORRECT


def test_the_evaluator_that_decided_before_stays_as_an_opinion() -> None:
    bench, other = Bench(best=0.5), other_judge(p1=0.9)
    trace = bench.pipeline.run(QUESTION)
    again = carried_on(bench, trace, second(bench, other))
    assert other.graded == ["p1", "p2", "p3", "web-1", "web-2"]
    assert [one.evaluator for one in again.opinions] == [bench.judge]
    (found,) = disagreement(again, lambda card: again.settings.policy)
    assert (found.main.decision.action, found.other.decision.action) == (Action.CORRECT, Action.AMBIGUOUS)
    assert step_names(again).count(GRADE) == step_names(again).count(SECOND_OPINION) == 1
    assert again.failure is None


def test_a_step_goes_where_its_grades_do_not_hold() -> None:
    bench = Bench(judge=JUDGE, best=0.9, web=WebMode.OFF)
    again = carried_on(bench, bench.pipeline.run(QUESTION), bench.under(prompts="2"))
    assert again.opinions == () and SECOND_OPINION not in step_names(again)
    assert [step.usage.calls for step in again.steps if step.name == GRADE] == [3]


def test_one_evaluator_by_two_models_keeps_both_opinions_apart() -> None:
    bench, scores = Bench(best=0.9), itertools.count(1)
    trace = bench.pipeline.run(QUESTION)
    for writer in ("llama", "qwen", "llama"):
        other = FakeEvaluator(lambda _: next(scores) / 10, JUDGE)
        trace = second(bench, other, writer=writer).second_opinion(trace)
    assert [(one.writer, one.grades[0].score) for one in trace.opinions] == [("llama", 0.1), ("qwen", 0.4)]
    chosen = with_evaluator(trace, "judge", "qwen")
    assert chosen is not None and chosen.settings.writer == "qwen"
