"""Astute RAG (arXiv 2410.07176): what the model knows is a source of its own, and never evidence."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.knowledge import Consolidation
from crag_core.base.types.steps import StepState
from crag_core.evaluators import shipped
from crag_core.evaluators.support.words import WordSupport
from crag_core.llamaindex.synthesizer import metadata_of
from crag_core.pipeline.run import WebMode
from crag_core.service.answers import answered
from crag_core.trace.grounding.citation_check import SupportLevel, support_level
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from crag_core.view.answer.consolidated import consolidated_view
from crag_core.view.path.run_path import run_path
from crag_core.view.run_view import view_run
from tests.builders import policy_file
from tests.fakes import QUESTION, USEFUL, Bench, FakeModel

POLICY = policy_file("astute-rag")
METER = WordSupport(shipped.EVALUATOR_FOLDER, shipped.signal_meter().stop_words)
KNOWN = "The ferry to Vennick leaves at ten."
BOTH = "It leaves at nine [1]. Others say at ten (from the model's memory)."


def pieces(*found: tuple[str, list[str], list[int]]) -> str:
    made = [{"text": text, "sources": sources, "contradicts": against} for text, sources, against in found]
    return json.dumps({"passages": made})


def knows(*passages: str) -> str:
    return json.dumps({"passages": passages})


CONFLICT = pieces((USEFUL, ["1", "2"], [2]), (KNOWN, ["M1"], [1]))


def bench(
    recall: object = knows(KNOWN), consolidate: object = CONFLICT, answer: object = BOTH, **options: Any
) -> tuple[Bench, FakeModel]:
    model = FakeModel(recall=recall, consolidate=consolidate, answer=answer)  # type: ignore[arg-type]
    return Bench(POLICY, model=model, web=WebMode.OFF, **options), model


def consolidated(trace: Trace) -> Consolidation:
    return trace.consolidations[-1]


def said_of(trace: Trace) -> tuple[AnswerEnding, bool, bool]:
    """The ending, whether it counts as answered, and whether it is from memory."""
    said = metadata_of(trace)["crag_summary"]
    assert answered(trace, kept=False, with_record=False).ending == said["ending"] == view_run(trace).routed.ending
    return AnswerEnding(said["ending"]), said["answered"], said["from_memory"]


def test_a_conflict_is_recorded_shown_and_answered_from_both_sides() -> None:
    made, model = bench()
    trace = made.pipeline.run(QUESTION)
    assert model.kinds == ["recall", "consolidate", "answer"] and trace.usage.calls == 3
    (own,) = consolidated(trace).own
    assert own == KNOWN and consolidated(trace).conflicts == ((1, 2),)
    routed = reroute(trace, POLICY)
    assert routed.missing == () and not routed.is_doubtful and routed.answer == trace.answer
    assert routed.knowledge.notes[0] == "Conflict: [1] [2] against the model's memory."
    asked = model.asked[-1][1][1][1]
    assert "Passage 1, from [1], [2]. It contradicts passage 2." in asked
    assert "Passage 2, from a language model's memory. It contradicts passage 1." in asked
    assert Trace.from_json(trace.to_json()) == trace
    shown = consolidated_view(view_run(trace))
    assert shown is not None and shown.own == (KNOWN,) and shown.from_memory_alone == (KNOWN,)
    assert [one.number for one in shown.groups[0].cited] == [1, 2]
    assert said_of(trace) == (AnswerEnding.ANSWERED, True, False)
    stage = run_path(trace, routed)["assemble"]
    assert (stage.title, stage.calls, stage.headline) == ("Consolidate", 2, "3 excerpts and memory")


def test_a_statement_from_memory_is_supported_by_nothing_even_where_the_evidence_has_its_words() -> None:
    said = f"{USEFUL[:-1]} [1]. {USEFUL} (from the model's memory) [1]"
    made, _ = bench(answer=said)
    trace = made.under(parts={"support": METER}).run(QUESTION)
    assert trace.support is not None
    assert [support_level(one.score) for one in trace.support] == [SupportLevel.SUPPORTED, SupportLevel.NONE]
    assert (trace.support[1].pieces, trace.support[1].cited) == ((), ())
    assert "1 from the model's memory, which is no evidence." in trace.steps[-1].summary


@pytest.mark.parametrize("kind", ["recall", "consolidate"])
def test_an_unreadable_reply_is_asked_for_twice_and_then_the_evidence_answers(kind: str) -> None:
    made, model = bench(**{kind: "I am not sure."}, answer="It leaves at nine [1].")
    trace = made.pipeline.run(QUESTION)
    assert model.kinds.count(kind) == 2 and trace.failure is None
    assert consolidated(trace).cause == "the reply holds no list of passages, or was cut off (asked twice)"
    routed = reroute(trace, POLICY)
    assert routed.knowledge.consolidation is None and routed.answer == trace.answer and routed.missing == ()
    assert routed.knowledge.notes[0].startswith("Not set beside the model's own knowledge: the reply holds no list")
    assert made.pipeline.resume(made.pipeline.adopt(trace)).answer == trace.answer
    assert model.kinds.count(kind) == 2, "it was asked"


def failing_once(reply: str) -> Callable[[object], str | Exception]:
    replies: list[str | Exception] = [ModelUnavailable("Ollama is away."), reply]
    return lambda _: replies.pop(0)


def test_a_model_that_is_away_costs_nobody_the_answer_and_is_asked_when_it_is_wanted() -> None:
    made, model = bench(consolidate=failing_once(CONFLICT))
    trace = made.pipeline.run(QUESTION)
    (step,) = [step for step in trace.steps if step.name == "consolidate"]
    assert (step.state, step.error) == (StepState.SKIPPED, "ModelUnavailable")
    assert trace.failure is None and trace.answer is not None and trace.answer.state is AnswerState.COMPLETE
    assert reroute(trace, POLICY).missing == (Missing.CONSOLIDATION,)
    done = made.pipeline.resume(made.pipeline.adopt(trace))
    assert reroute(done, POLICY).missing == () and consolidated(done).conflicts
    assert model.kinds == ["recall", "consolidate", "answer", "recall", "consolidate", "answer"]


def test_without_a_language_model_nothing_is_consolidated_and_that_is_said() -> None:
    made = Bench(POLICY, best=0.5, web=WebMode.OFF)
    trace = made.pipeline.run(QUESTION)
    routed = reroute(trace, POLICY)
    assert routed.missing == () and routed.is_doubtful and trace.usage.calls == 0
    assert routed.knowledge.notes == (f"No language model: {POLICY.without_model}",)
