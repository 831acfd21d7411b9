"""Self-Route (arXiv 2407.16881): the reply to the chunks is the answer, or the documents are read whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.edits import Edits
from crag_core.base.types.passages import Passage
from crag_core.pipeline.run import WebMode
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from crag_core.view.path.run_path import run_path
from crag_core.view.record import round_rows
from crag_core.view.run_view import view_run
from tests.builders import policy_file
from tests.fakes import ANSWER, QUESTION, Bench, FakeModel, passage, step_names

POLICY = policy_file("self-route")
CANNOT = "CANNOT ANSWER"


def whole(number: int, text: str) -> Passage:
    return replace(passage(number, text), id=f"file-d{number}", found_by=("read_file",))


FILES = {f"d{n}": whole(n, f"Whole document {n}. The ferry to Vennick leaves at nine.") for n in (1, 2, 3)}


def bench(*replies: object, files: dict[str, Passage] | None = None, **options: object) -> tuple[Bench, FakeModel]:
    left = list(replies)
    model = FakeModel(answer=lambda _: left.pop(0))
    made = Bench(POLICY, model=model, web=WebMode.OFF, **options)  # type: ignore[arg-type]
    made.retriever.files = FILES if files is None else files
    return made, model


def test_what_is_answered_when_it_is_asked_is_the_answer_at_one_call() -> None:
    made, model = bench(ANSWER)
    trace = made.pipeline.run(QUESTION)
    assert trace.answer is not None and trace.decision is not None
    assert (trace.answer.text, trace.answer.writer, trace.answer.usage.calls) == (ANSWER, "fake-model", 0)
    assert trace.usage.calls == 1 and model.kinds == ["answer"] and made.counts["read"] == 0
    assert trace.decision.action is Action.CORRECT and reroute(trace, POLICY).answer == trace.answer
    assert Trace.from_json(trace.to_json()) == trace


def test_what_is_declined_is_asked_again_with_the_whole_documents_and_that_is_an_answer() -> None:
    made, model = bench(CANNOT, "At nine, says the whole document [1].")
    trace = made.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.decision.action is Action.AMBIGUOUS
    assert made.retriever.read == [("d1",), ("d2",), ("d3",)] and len(made.retriever.asked) == 1
    assert "Whole document 1." in model.asked[-1][1][1][1] and trace.usage.calls == 2
    routed = reroute(trace, POLICY)
    assert routed.answer == trace.answer and not routed.is_doubtful and routed.missing == ()
    summary = summarize(trace)
    assert summary.answered and not summary.doubtful and summary.strategy == "whole_documents"
    path = {one.id: one for one in run_path(trace, routed).stages}
    assert (path["again"].headline, path["refine"].title, path["refine"].headline) == (
        "1 more round, 3 new",
        "Read whole",
        "3 documents",
    )
    assert round_rows(view_run(trace))[-1].how == "documents: 3 of 3 read"
    assert [one.passage_id for one in trace.grades or ()] == ["p1", "p2", "p3"], "documents are read, not graded"
    assert Trace.from_json(trace.to_json()) == trace


def test_declined_twice_is_no_answer() -> None:
    made, _ = bench(CANNOT, CANNOT)
    trace = made.pipeline.run(QUESTION)
    assert trace.answer is not None and trace.answer.state is AnswerState.CANNOT_ANSWER
    assert trace.answer.message == "fake-model found no answer in the 3 excerpts that it was given."


def test_the_budget_is_filled_in_rank_order_and_what_is_cut_is_told() -> None:
    """6,000 tokens hold the first document and a part of the second, around its best chunk; the third is not read."""
    filling = " ".join(f"Nothing of use in line {n}." for n in range(1, 601))  # about 4,700 tokens
    best = passage(2).text
    files = {
        "d1": whole(1, f"Whole document 1. {filling}"),
        "d2": whole(2, f"{filling} {best} {filling}"),
        "d3": whole(3, "Whole document 3."),
    }
    made, model = bench(CANNOT, ANSWER, files=files)
    trace = made.pipeline.run(QUESTION)
    (found,) = trace.rounds
    first, second = found.retrievals[0].passages
    assert first.text == files["d1"].text and best in second.text and len(second.text) < len(files["d2"].text) / 3
    assert made.retriever.read == [("d1",), ("d2",)]
    assert found.query_by.startswith("2 of 3 read, of document-2.txt about ")
    assert found.query_by.endswith("around its best chunk; 1 not read, the budget of 6,000 tokens is full")
    assert any(found.query_by in step.summary for step in trace.steps if step.name == "retrieve again")
    assert model.asked[-1][1][1][1].count("<evidence>") == 2


def test_documents_that_are_gone_are_told_and_the_refusal_stands() -> None:
    made, model = bench(CANNOT, files={})
    trace = made.pipeline.run(QUESTION)
    assert trace.answer is not None and trace.answer.state is AnswerState.CANNOT_ANSWER and trace.failure is None
    assert reroute(trace, POLICY).decision_path.not_made == "d3 is not indexed." and model.kinds == ["answer"]


def test_chunks_of_no_document_are_used_as_they_are() -> None:
    made, _ = bench(CANNOT, found=(passage(1, document_id=""),))
    trace = made.pipeline.run(QUESTION)
    assert reroute(trace, POLICY).decision_path.not_made == "the chunks belong to no document"
    assert made.retriever.read == [] and trace.failure is None


def test_under_another_policy_documents_are_missing_and_one_resume_reads_them() -> None:
    model = FakeModel(answer=CANNOT)
    paper = Bench("paper", model=model, web=WebMode.OFF)
    paper.retriever.files = FILES
    trace = paper.pipeline.run(QUESTION)
    assert Missing.SUFFICIENCY in reroute(trace, POLICY).missing
    under = paper.under(policy=POLICY)
    done = under.resume(under.adopt(trace))
    assert done.decision is not None and done.decision.action is Action.AMBIGUOUS and len(done.rounds) == 1
    unread = replace(done, rounds=())
    routed = reroute(unread, POLICY)
    assert Missing.DOCUMENTS in routed.missing and routed.answer is None
    assert reroute(done, trace.settings.policy).decision == trace.decision


def test_the_two_ways_to_ask_are_kept_apart_in_one_record() -> None:
    made, model = bench(ANSWER, ANSWER)
    trace = made.pipeline.run(QUESTION)
    other = policy_file("sufficient-context")
    assert Missing.SUFFICIENCY in reroute(trace, other).missing, "an answer is no label"
    under = made.under(policy=other)
    both = under.resume(under.adopt(trace))
    assert [one.by for one in both.sufficiency] == ["answer", "autorater"] and model.kinds.count("sufficient") == 1
    assert reroute(both, POLICY).missing in ((), (Missing.ANSWER,))


def test_a_dropped_document_leaves_the_others() -> None:
    made, _ = bench(CANNOT, ANSWER)
    trace = made.pipeline.run(QUESTION)
    routed = reroute(replace(trace, edits=Edits(dropped=("file-d1",))), POLICY)
    assert [one.id for one in routed.decision_path.evidence] == ["file-d2", "file-d3"]
    assert Missing.ANSWER in routed.missing, "the answer was written from three"


def test_a_server_that_dies_between_the_two_requests_costs_nothing_twice() -> None:
    made, model = bench(CANNOT, ModelUnavailable("away"), ANSWER)
    broken = made.pipeline.run(QUESTION)
    assert broken.failure is not None and broken.failure.name == "answer"
    trace = made.pipeline.resume(made.pipeline.adopt(broken))
    assert trace.answer is not None and trace.answer.text == ANSWER.strip()
    assert model.kinds == ["answer"] * 3 and len(made.retriever.read) == 3


@pytest.mark.parametrize("reply", ["", "<think>Hm."])
def test_an_empty_reply_decides_nothing(reply: str) -> None:
    made, _ = bench(reply, ANSWER)
    trace = made.pipeline.run(QUESTION)
    assert trace.decision is not None and (trace.decision.action, trace.decision.score) == (Action.AMBIGUOUS, None)
    assert made.counts["read"] == 0 and "judge together" in step_names(trace)
    assert reroute(trace, POLICY).is_doubtful


def test_without_a_language_model_no_document_is_read() -> None:
    made = Bench(POLICY, best=0.5, web=WebMode.OFF)
    made.retriever.files = FILES
    trace = made.pipeline.run(QUESTION)
    routed = reroute(trace, POLICY)
    assert made.counts["read"] == 0 and routed.is_doubtful and routed.missing == ()
    assert routed.knowledge.notes == (f"No language model: {POLICY.without_model}",)
