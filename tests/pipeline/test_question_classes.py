"""Adaptive-RAG (arXiv 2403.14403): the question is sorted first, and what each class costs, shows and records."""

from dataclasses import replace
from typing import Any

from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import StepState
from crag_core.llamaindex.synthesizer import metadata_of, shown
from crag_core.pipeline.run import WebMode
from crag_core.report import render
from crag_core.trace.grounding.ending import FROM_MEMORY, AnswerEnding
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from crag_core.view.answer.answer_blocks import AnswerBlocks
from crag_core.view.path.run_path import run_path
from crag_core.view.path.stages import StageState
from crag_core.view.run_view import view_run
from crag_core.view.story.story import tell
from crag_core.view.verdict_lines import Chip, chip, flip_lines, no_flip
from tests.builders import policy_file
from tests.fakes import MEMORY, QUESTION, Bench, FakeModel, passage, passages

POLICY = policy_file("adaptive-rag")


def bench(letter: str = "C", **options: Any) -> tuple[Bench, FakeModel]:
    replies = {"classify": f'{{"verdict": "{letter}"}}'} | options.pop("replies", {})
    model = FakeModel(**replies)
    return Bench(POLICY, model=model, web=WebMode.OFF, **options), model


def test_no_retrieval_reads_nothing_and_every_place_says_so() -> None:
    made, model = bench("A")
    trace = made.pipeline.run(QUESTION)
    assert made.counts == {"classify": 1, "alone": 1} and trace.usage.calls == 2 and trace.failure is None
    assert trace.answer is not None and trace.answer.text == MEMORY and model.kinds == ["classify", "alone"]
    routed, view = reroute(trace, POLICY), view_run(trace)
    assert routed.answer == trace.answer and routed.missing == () and routed.knowledge.notes == (FROM_MEMORY,)
    assert view.routed.ending is AnswerEnding.FROM_MEMORY
    assert ("doubtful", FROM_MEMORY) in AnswerBlocks(view, trace.answer).notes
    assert chip(routed.decision, "") == Chip("No retrieval", "No document was read")
    assert (flip_lines(view), no_flip(view)) == ((), "No threshold is looked at.")
    summary = summarize(trace)
    assert (summary.decision, summary.action, summary.score, summary.from_memory) == ("NO_RETRIEVAL", "", None, True)
    assert shown(trace) == f"{FROM_MEMORY}\n\n{MEMORY}" and metadata_of(trace)["crag_summary"]["from_memory"]
    assert "No document was read" in render(trace, POLICY) and "Plain RAG" not in render(trace, POLICY)
    told = tell(view)
    assert told.steps[-1].title == "An answer without a source"
    assert "Plain RAG" not in " ".join(step.caption for step in told.steps)
    path = run_path(trace, routed)
    assert {path[name].state for name in ("retrieve", "grade")} == {StageState.SKIPPED}
    assert path["retrieve"].headline == "no document is needed"
    assert Trace.from_json(trace.to_json()) == trace


def test_a_run_of_another_policy_was_not_sorted_and_is_when_asked() -> None:
    model = FakeModel(classify='{"verdict": "A"}')
    paper = Bench("paper", model=model, web=WebMode.OFF)
    trace = paper.pipeline.run(QUESTION)
    routed = reroute(trace, POLICY)
    assert Missing.QUESTION_CLASS in routed.missing and routed.answer is None
    assert routed.decision.reason == "question not classified"
    under = paper.under(policy=POLICY)
    paper.forget_counts()
    done = under.resume(under.adopt(trace))
    assert paper.counts == {"classify": 1, "alone": 1}
    assert done.passages == trace.passages, "the chunks stay in the record, and are not used"
    assert reroute(done, POLICY).knowledge.excerpts == ()
    assert reroute(done, trace.settings.policy).decision == trace.decision


def test_without_a_language_model_a_rule_sorts_and_that_is_said() -> None:
    made = Bench(POLICY, best=0.9, web=WebMode.OFF)
    trace = made.pipeline.run(QUESTION)
    routed = reroute(trace, POLICY)
    assert routed.decision.rule == "one_retrieval" and routed.missing == ()
    assert routed.knowledge.notes == (f"No language model: {POLICY.without_model}",)
    assert (trace.steps[0].name, trace.steps[0].state) == ("classify", StepState.SKIPPED)
    assert trace.steps[0].summary == "B, by a rule: no language model to ask"
    several = made.pipeline.run("When does it leave, and what does it cost?")
    assert several.decision is not None and several.decision.rule is None


def test_what_was_not_retrieved_is_missing_under_another_policy_and_retrieved_when_asked() -> None:
    made, _ = bench("A", best=0.9)
    trace = made.pipeline.run(QUESTION)
    paper = policy_file("paper")
    routed = reroute(trace, paper)
    assert Missing.CHUNKS in routed.missing and routed.answer is None
    under = made.under(policy=paper)
    done = under.resume(under.adopt(trace))
    assert done.passages == passages(3) and done.decision is not None and done.decision.verdict is Action.CORRECT
    assert Missing.CHUNKS not in reroute(done, paper).missing


def test_pinned_files_are_always_read() -> None:
    file = replace(passage(7, "The whole file."), id="file-d7", found_by=("read_file",))
    made, model = bench("A", files=(file,))
    trace = made.pipeline.run(QUESTION)
    assert "classify" not in model.kinds and trace.passages == (file,)
    assert trace.decision is not None and trace.decision.rule == "one_retrieval"
