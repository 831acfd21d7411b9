"""Self-Route (arXiv 2407.16881): the reply to the chunks is the answer, or the documents are read whole."""

from dataclasses import replace

from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import Passage
from crag_core.pipeline.run import WebMode
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from crag_core.view.path.run_path import run_path
from crag_core.view.record import round_rows
from crag_core.view.run_view import view_run
from tests.builders import policy_file
from tests.fakes import ANSWER, QUESTION, Bench, FakeModel, passage

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
    path = run_path(trace, routed)
    assert (path["again"].headline, path["refine"].title, path["refine"].headline) == (
        "1 more round, 3 new",
        "Read whole",
        "3 documents",
    )
    assert round_rows(view_run(trace))[-1].how == "documents: 3 of 3 read"
    assert [one.passage_id for one in trace.grades or ()] == ["p1", "p2", "p3"], "documents are read, not graded"
    assert Trace.from_json(trace.to_json()) == trace


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
