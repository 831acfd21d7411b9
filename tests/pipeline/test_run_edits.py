"""Runs under edits, and second opinions: what is asked anew, what is reused, and what never reaches the answer."""

import threading
from dataclasses import replace

from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Opinion
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import StepName, StepState
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import Run
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, Bench, Diary, FakeEvaluator, FakeModel, by_id, card, passage, passages

GRADE, SECOND_OPINION = StepName.GRADE, StepName.SECOND_OPINION

JUDGE = card("judge", calls_model=True)


def edit(trace: Trace, *, drop: str = "", pin: str = "") -> Trace:
    return replace(trace, edits=Edits(tuple(drop.split()), tuple(pin.split())))


def carried_on(bench: Bench, trace: Trace, pipeline: Pipeline | None = None) -> Trace:
    """Generated from the record: adopted and resumed, with all counts of before forgotten."""
    pipeline = pipeline or bench.pipeline
    bench.forget_counts()
    return pipeline.resume(pipeline.adopt(trace))


def told(model: FakeModel) -> str:
    """What the model was told when it was last asked for an answer."""
    return next(messages[-1][1] for asked, messages in reversed(model.asked) if asked == "answer")


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
    assert search.reason.endswith("1 result") and summarize(later).final_count == 3
    assert not {"p1", "web-1"} & {piece.partition("#")[0] for piece in later.context or ()}


def test_no_judge_is_asked_about_a_pinned_passage() -> None:
    bench = Bench(judge=JUDGE, best=0.5, model=FakeModel())
    trace = edit(replace(bench.pipeline.run(QUESTION), opinions=(), web=None), pin="p2")
    assert carried_on(bench, trace).failure is None
    assert bench.evaluator.graded == ["p1", "p3"]
    every = carried_on(bench, edit(trace, pin="p1 p2 p3"))
    assert bench.counts == {"answer": 1}
    assert every.grades == () and every.decision is not None and every.decision.score == 1.0
    unpinned = carried_on(bench, edit(every))
    assert bench.evaluator.graded[:3] == ["p1", "p2", "p3"]
    assert unpinned.decision is not None and unpinned.decision.score == 0.5


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
    own, opinion = heard.opinions
    assert (opinion.evaluator, opinion.writer) == (JUDGE, "fake-model")
    assert [(g.passage_id, g.score) for g in opinion.grades] == [
        ("p1", 0.9), ("p2", 0.8), ("p3", 0.7), ("web-1", 0.5), ("web-2", 0.5),
    ]  # fmt: skip
    assert replace(heard, opinions=(own,), steps=trace.steps) == trace, "the record only grows"
    step = heard.steps[-1]
    assert (step.name, step.state, step.usage.calls) == (SECOND_OPINION, StepState.DONE, 5)
    assert step.summary == f"5 of 5 chunks graded by {JUDGE.title.lower()}"
    assert (diary.begun, diary.done) == ([SECOND_OPINION], [step])
    assert diary.progress == [(SECOND_OPINION, 0, 5), (SECOND_OPINION, 3, 5), (SECOND_OPINION, 5, 5)]


def test_a_stop_keeps_what_was_graded_and_the_run_has_not_broken_off() -> None:
    cancel, other = threading.Event(), other_judge()
    bench = Bench(best=0.5, found=passages(6))
    trace = bench.pipeline.run(QUESTION)
    other.before = lambda: cancel.set() if len(other.asked) == 2 else None
    stopped = second(bench, other).second_opinion(trace, Run(cancel=cancel))
    step = stopped.steps[-1]
    assert (step.state, step.summary) == (StepState.STOPPED, "stopped by you after 4 of 8 chunks")
    assert [g.passage_id for g in stopped.opinions[1].grades] == ["p1", "p2", "p3", "p4"]
    assert stopped.failure is None and stopped.answer == trace.answer
    other.before = lambda: None
    done = second(bench, other).second_opinion(stopped)
    assert other.asked[2:] == [("p5", "p6"), ("web-1", "web-2")]
    assert len(done.opinions[1].grades) == 8
    assert [(s.state, s.usage.calls) for s in done.steps if s.name == SECOND_OPINION] == [
        (StepState.STOPPED, 4),
        (StepState.DONE, 4),
    ]


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
    assert again.other_opinions == (Opinion(bench.judge, "fake-model", trace.all_grades),)
    assert [step.usage.calls for step in again.steps if step.name == GRADE] == [5], "the cost goes with its grades"
    back = carried_on(bench, again, bench.pipeline)
    assert bench.counts == {"answer": 1} and back.grades == trace.grades and back.opinions == heard.opinions
