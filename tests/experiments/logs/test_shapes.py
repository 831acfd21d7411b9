"""Logs in the shapes that the tools document, and in those that people write by hand; bad rows and hostile ones."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from crag_core.base.errors import UnknownName
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.logs.read import ReadLog, described, read_log
from crag_core.experiments.logs.record import Context, LogRecord, RetrievalLog, parse_log, passages_of
from crag_core.experiments.logs.values import MOST_CHUNKS


def read(content: str | bytes, *arguments: Any, **more: Any) -> ReadLog:
    return read_log(content.encode() if isinstance(content, str) else content, *arguments, **more)


def lines(*rows: Any) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def one(found: ReadLog) -> LogRecord:
    assert not found.problems and not found.failure, (found.problems, found.failure)
    (record,) = found.records
    return record


# --- tables -----------------------------------------------------------------------------------------------------------


def test_common_names_of_columns_are_known() -> None:
    questions = ("question", "Query", "user input", "input", "prompt")
    contexts = ("contexts", "retrieved_contexts", "documents", "Passages", "source_documents")
    for question, chunks in product(questions, contexts):
        record = one(read(lines({question: "When?", chunks: ["At ten.", "At six."], "response": "Ten.", "truth": "x"})))
        assert (record.question, [chunk.text for chunk in record.contexts]) == ("When?", ["At ten.", "At six."])
        assert record.answer == "Ten." and record.references == () and record.row == 1


CHUNKS: dict[str, Any] = {
    "texts": ["At ten."],
    "objects": [{"text": "At ten.", "id": "c1", "score": 0.5, "metadata": {"source": "f.md", "page": 3}}],
    "LangChain": [{"page_content": "At ten.", "metadata": {"source": "f.md", "id": "c1", "score": 0.5, "page": 3}}],
    "LangChain in JavaScript": [{"pageContent": "At ten.", "metadata": {"source": "f.md", "id": "c1"}}],
    "one of several questions": [["At ten.", "At six."]],
    "LangChain, printed": ["page_content='At ten.' metadata={'source': 'f.md', 'page': 3}"],
    "LangChain, printed by repr": ["""Document(page_content="At ten.", metadata={'source': 'f.md'})"""],
    "LangChain with scores": [[{"page_content": "At ten.", "metadata": {"source": "f.md"}}, 0.5]],
    "LlamaIndex": [{"node": {"id_": "c1", "text": "At ten.", "metadata": {"file_name": "f.md"}}, "score": 0.5}],
    "Qdrant": [{"id": "c1", "score": 0.5, "payload": {"content": "At ten.", "title": "f.md"}}],
    "OpenInference": [{"document.content": "At ten.", "document.id": "c1", "document.score": 0.5}],
    "a frame": {"documents": [{"content": "At ten.", "score": 0.5}]},
    "a cell of JSON": '[{"text": "At ten.", "score": 0.5}]',
    "a cell of Python": "['At ten.']",
    "texts by their ids": {"c1": "At ten.", "c2": "At six."},
    "Dify": [{"content": "At ten.", "score": 0.5, "segment_id": "c1", "document_name": "f.md"}],
    "MLflow": [{"content": "At ten.", "doc_uri": "c1"}],
    "one text": "At ten.",
}


@pytest.mark.parametrize("name", CHUNKS)
def test_chunks_are_read_however_they_are_written(name: str) -> None:
    first, *rest = one(read(lines({"question": "When?", "contexts": CHUNKS[name]}))).contexts
    assert first.text == "At ten." and [chunk.text for chunk in rest] == ["At six."] * ("six" in str(CHUNKS[name]))
    assert first.score in (0.5, None) and first.id in ("c1", "")
    assert first.source in ("f.md", "") and first.page in (3, None)


def test_scores_ids_and_sources_may_have_columns_of_their_own() -> None:
    row = {"query": "When?", "passages": ["a", "b"], "scores": [0.9, 0.2], "context_ids": ["x", "y"], "sources": ["f"]}
    assert one(read(lines(row))).contexts == (Context("a", "x", "f", 0.9), Context("b", "y", "f", 0.2))
    (problem,) = read(lines(row, row | {"scores": [0.9]})).problems
    assert problem.row == 2 and "Expected 2 scores, one a chunk, found 1" in problem.message


JSON = {
    "datasets by columns": '{"question": ["When?", "Where?"], "contexts": [["a"], ["b"]]}',
    "a frame": '{"data": [{"question": "When?", "contexts": ["a"]}, {"question": "Where?", "contexts": ["b"]}]}',
    "one record over several lines": '{\n "question": "When?",\n "contexts": ["a"]\n}',
    "several over several lines": '{"question": "When?",\n"contexts": ["a"]}\n{"question": "W?", "contexts": ["b"]}',
    "commas between lines": '{"question": "When?", "contexts": ["a"]},\n{"question": "Where?", "contexts": ["b"]},\n',
    "bars between cells": "question|contexts\nWhen?|a\n",
}


@pytest.mark.parametrize("content", JSON.values(), ids=JSON)
def test_json_is_read_in_every_orientation(content: str) -> None:
    found = read(content)
    assert not found.problems and found.records[0].question == "When?" and found.records[0].contexts[0].text == "a"
    assert len(found.records) == 1 + ("W" in content.partition("When?")[2])


def test_what_cannot_be_read_is_told_and_printed_arrays_are_not_joined() -> None:
    assert "frame.to_json" in read(b"PAR1 and more").failure
    printed = one(read(lines({"question": "When?", "contexts": "['At ten.'\n 'At six.']"})))
    assert [chunk.text for chunk in printed.contexts] == ["['At ten.'\n 'At six.']"]


def test_other_columns_can_be_chosen_and_paths_into_them() -> None:
    row = {"q1": "When?", "trace": {"docs": ["a"]}, "out": {"text": "Ten."}, "answer": "wrong column"}
    found = read(lines(row), chosen={"question": "q1", "contexts": "trace.docs", "answer": "out.text"})
    assert one(found).answer == "Ten." and dict(found.mapping)["contexts"] == "trace.docs"
    assert read(lines(row), chosen={"question": "q1", "contexts": "trace.docs", "answer": ""}).records[0].answer == ""


def test_what_is_missing_is_named_with_the_columns_there_are() -> None:
    found = read("frage,kontext\na,b\n")
    assert (
        "a column with the question and a column with the chunks" in found.failure
        and "'frage', 'kontext'" in found.failure
    )
    with pytest.raises(UnknownName, match="question"):
        read("a,b\n", chosen={"qestion": "a"})
    with pytest.raises(UnknownName, match="langfuse"):
        read("a,b\n", "langfusion")


def test_a_column_of_labels_is_one_and_words_that_are_none_are_counted() -> None:
    rows = [{"question": f"{n}?", "contexts": ["a"]} for n in range(4)]
    found = read(
        lines(rows[0] | {"expected": "CORRECT"}, rows[1] | {"expected": "At ten."}, rows[2] | {"label": "good"})
    )
    assert [one.expected for one in found.records] == [Expected.CORRECT, None, None]
    assert found.records[1].references == ("At ten.",) and "1 label could not be read" in found.remarks[0]
    assert one(read(lines(rows[3] | {"answerable": False}))).expected is Expected.UNANSWERABLE


BAD: dict[str, tuple[Any, str]] = {
    "no question": ({"question": " ", "contexts": ["a"]}, "Expected a question, found none"),
    "no chunks": ({"question": "When?", "contexts": None}, "Expected the chunks that were retrieved, found none"),
    "ids of chunks": ({"question": "When?", "contexts": [1, 2]}, "Expected text in chunk 1, found none"),
    "an empty chunk": ({"question": "When?", "contexts": ["a", " "]}, "Expected text in chunk 2, found none"),
    "too many chunks": ({"question": "When?", "contexts": ["a"] * (MOST_CHUNKS + 1)}, "found 101"),
    "a long chunk": ({"question": "When?", "contexts": ["a" * 100_001]}, "found 100,001"),
}


@pytest.mark.parametrize(("row", "told"), BAD.values(), ids=BAD)
def test_a_bad_row_is_refused_with_its_number_and_the_others_go_in(row: Any, told: str) -> None:
    good = {"question": "When?", "contexts": ["a"]}
    found = read(lines(good, row, good))
    assert len(found.records) == 2 and [problem.row for problem in found.problems] == [2]
    assert told in found.problems[0].message and described(found) == "2 records, 2 chunks, 1 row refused"


def test_nothing_retrieved_is_a_record_and_bad_rows_are_numbered() -> None:
    good = {"question": "When?", "contexts": []}
    for content in (lines(good) + "{broken\n7\n", json.dumps([good, {"question": "When?"}, 7])):
        found = read(content)
        assert found.records[0].contexts == () and [one.row for one in found.problems] == [2, 3]
    alike = read(lines(*[{"q": "a"}] * 2, {"question": "When?", "contexts": ["a"]}))
    assert len(alike.records) == 1 and len(alike.problems) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01\x02" * 50,
        b"{" * 5000,
        b"[" * 5000,
        b'{"a": 1}',
        b"PK\x03\x04",
        b'{"id": "r", "run_type": "chain", "child_runs": 7}',
    ],
)
def test_what_is_no_log_is_told_and_never_raises(content: bytes) -> None:
    found = read(content)
    assert not found.records and found.failure


def test_nothing_in_a_cell_is_run_and_depth_is_bounded() -> None:
    row = {"question": "When?", "contexts": "[__import__('os').system('touch /tmp/ran')]"}
    assert one(read(lines(row))).contexts[0].text.startswith("[__import__")
    deep = {"question": "When?", "contexts": "(" * 3000 + "'a'" + ")" * 3000}
    assert len(read(lines(deep)).records) + len(read(lines(deep)).problems) == 1


def test_two_records_of_one_question_and_one_id_both_survive() -> None:
    row = {"id": "7", "question": "When?", "contexts": ["a"]}
    found = read(lines(row, row | {"contexts": ["b"]}, row))
    assert [one.id for one in found.records] == ["7", "7 (row 2)", "7 (row 3)"]


# --- ragas ------------------------------------------------------------------------------------------------------------


def test_a_ragas_dataset_as_jsonl_and_as_csv() -> None:
    row = {
        "user_input": "When?", "retrieved_contexts": ["At ten.", "At six."], "response": "Ten.", "reference": "At ten.",
        "reference_contexts": ["At ten."],
    }  # fmt: skip
    by_json = one(found := read(lines(row)))
    assert found.shape == "ragas" and by_json.references == ("At ten.",) and by_json.reference_contexts == ("At ten.",)
    cells = f'"{row["retrieved_contexts"]}","{row["reference_contexts"]}"'
    by_csv = one(
        read(f"user_input,retrieved_contexts,reference_contexts,response,reference\nWhen?,{cells},Ten.,At ten.\n")
    )
    assert by_csv.contexts == by_json.contexts and by_csv.reference_contexts == by_json.reference_contexts


def test_a_conversation_of_ragas_is_refused_by_row_and_a_test_set_as_a_whole() -> None:
    turns = {"user_input": [{"content": "Hi", "type": "human"}], "retrieved_contexts": ["a"], "response": "b"}
    single = {"user_input": "When?", "retrieved_contexts": ["a"], "response": "b"}
    found = read(lines(turns, single))
    assert [one.row for one in found.problems] == [1] and "several turns" in found.problems[0].message
    assert "no retrieved chunks yet" in read(lines({"user_input": "When?", "reference": "Ten."})).failure


# --- traces -----------------------------------------------------------------------------------------------------------


def span(kind: str, id_: str, parent: str | None, **attributes: Any) -> dict[str, Any]:
    return {
        "name": kind.lower(), "context": {"trace_id": "t1", "span_id": id_}, "span_kind": kind, "parent_id": parent,
        "start_time": f"2026-01-01T00:00:0{len(id_)}", "attributes": {"openinference.span.kind": kind, **attributes},
    }  # fmt: skip


ROOT = span("CHAIN", "a", None, **{"input.value": "When?", "output.value": "At ten."})
RETRIEVER = span(
    "RETRIEVER", "bb", "a",
    **{
        "input.value": "leave when", "retrieval.documents.0.document.content": "It leaves at ten.",
        "retrieval.documents.0.document.score": 0.8, "retrieval.documents.0.document.id": "c1",
        "retrieval.documents.0.document.metadata": '{"source": "f.md", "page": 2}',
        "retrieval.documents.10.document.content": "The last.", "retrieval.documents.2.document.content": "The second.",
    },
)  # fmt: skip
MODEL = span("LLM", "cccc", "a", **{
    "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "At ten.",
})  # fmt: skip
COLUMNS = (
    {"name": "query", "span_kind": "CHAIN", "parent_id": None, "context.trace_id": "t1", "context.span_id": "a",
     "attributes.input.value": '{"query": "When?"}', "attributes.input.mime_type": "application/json",
     "attributes.output.value": '{"result": "At ten."}', "attributes.metadata": {"ground_truth": "ten"}},
    {"name": "retrieve", "span_kind": "RETRIEVER", "parent_id": "a", "context.trace_id": "t1", "context.span_id": "b",
     "attributes.retrieval.documents": [{"document.content": "It leaves at ten.", "document.score": 0.8}]},
)  # fmt: skip
OTLP = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t1", "spanId": "s", "attributes": [
    {"key": key, "value": {"stringValue": value}} for key, value in (
        ("openinference.span.kind", "RETRIEVER"), ("input.value", "When?"),
        ("retrieval.documents.0.document.content", "It leaves at ten."),
    )
]}]}]}]}  # fmt: skip
NESTED = {"trace_id": "t1", "span_id": "s", "attributes": {
    "openinference": {"span": {"kind": "RETRIEVER"}}, "input": {"value": "When?"},
    "retrieval": {"documents": [{"document": {"content": "It leaves at ten.", "id": "c"}}]},
}}  # fmt: skip
DOCUMENTS = [{"page_content": "It leaves at ten.", "metadata": {"source": "f.md"}, "type": "Document"}]
OBSERVATIONS = [
    {"id": "o1", "traceId": "t1", "type": "RETRIEVER", "name": "vector store", "input": "When?", "output": DOCUMENTS},
    {"id": "o2", "traceId": "t1", "type": "GENERATION", "name": "ChatOpenAI", "startTime": "2026",
     "output": {"role": "assistant", "content": "At ten."}},
]  # fmt: skip
GUESSED = [OBSERVATIONS[0] | {"type": "SPAN", "name": "retrieve-context"}, OBSERVATIONS[1]]
TRACE = {
    "id": "t1", "name": "rag", "input": {"question": "When?"}, "output": None, "observations": OBSERVATIONS,
    "metadata": {"expected_output": "ten"}, "scores": [],
}  # fmt: skip
CHAIN = {"id": "o0", "traceId": "t1", "type": "CHAIN", "name": "RetrievalQA", "input": "When?",
         "output": {"text": "At ten."}}  # fmt: skip
RUNS = [
    {"id": "t1", "trace_id": "t1", "parent_run_id": None, "run_type": "chain", "name": "RAG",
     "inputs": {"question": "When?"}, "outputs": {"answer": "At ten."}, "error": None},
    {"id": "r2", "trace_id": "t1", "parent_run_id": "t1", "run_type": "retriever", "name": "VectorStoreRetriever",
     "inputs": {"query": "when"}, "outputs": {"documents": DOCUMENTS}},
    {"id": "r3", "trace_id": "t1", "parent_run_id": "t1", "run_type": "llm", "inputs": {"messages": []},
     "outputs": {"generations": [[{"text": "At ten."}]]}},
]  # fmt: skip
CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "user", "content": "When?"}]}
TOLD = {"result": "At ten.", "source_documents": DOCUMENTS}
TRACES: dict[str, tuple[str, Any]] = {
    "Phoenix over REST": ("openinference", {"data": [RETRIEVER, ROOT], "next_cursor": None}),
    "Phoenix as columns": ("openinference", COLUMNS),
    "OpenTelemetry": ("openinference", OTLP),
    "nested attributes": ("openinference", [NESTED]),
    "the answer of the model": (
        "openinference", (span("CHAIN", "a", None, **{"input.value": "When?"}), RETRIEVER, MODEL),
    ),
    "Langfuse": ("langfuse", TRACE),
    "Langfuse, steps by name": ("langfuse", TRACE | {"observations": GUESSED}),
    "Langfuse over REST": ("langfuse", {"data": [TRACE], "meta": {"page": 1}}),
    "Langfuse, downloaded": ("langfuse", {"trace": TRACE, "observations": OBSERVATIONS}),
    "Langfuse, a session": ("langfuse", {"id": "s", "traces": [TRACE]}),
    "Langfuse, a row an observation": (
        "langfuse", [one | {"output": json.dumps(one["output"])} for one in OBSERVATIONS],
    ),
    "Langfuse, a chain named as a search": ("langfuse", [CHAIN, *OBSERVATIONS]),
    "Langfuse, chunks in the output": ("langfuse", TRACE | {"output": TOLD, "observations": ["o1", "o2"]}),
    "LangSmith, a row a run": ("langsmith", RUNS),
    "LangSmith as a tree": ("langsmith", [RUNS[0] | {"child_runs": RUNS[1:]}]),
    "LangSmith over REST": ("langsmith", {"runs": RUNS}),
    "LangSmith, messages and what a function returned": (
        "langsmith",
        [RUNS[0] | {"inputs": CHAT, "outputs": None}, RUNS[1] | {"outputs": {"output": DOCUMENTS}}, RUNS[2]],
    ),
    "LangSmith, chunks in the output": ("langsmith", [RUNS[0] | {"outputs": TOLD}]),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACES)
def test_traces_are_read_however_they_are_packed(name: str) -> None:
    shape, content = TRACES[name]
    text = json.dumps(content, indent=1) if isinstance(content, dict) else lines(*content)
    record = one(found := read(text))
    assert (found.shape, record.id, record.question) == (shape, "t1", "When?")
    assert record.answer == ("" if name in ("OpenTelemetry", "nested attributes") else "At ten.")
    assert record.contexts[0].text == "It leaves at ten." and record.contexts[0].source in ("f.md", "")
    assert record.references == (("ten",) if "ten" in str(record.references) else ())


def test_all_that_a_trace_tells_of_a_chunk_and_beside_it() -> None:
    contexts = one(read(lines(RETRIEVER, ROOT))).contexts
    assert contexts[0] == Context("It leaves at ten.", "c1", "f.md", 0.8, 2)
    assert [chunk.text for chunk in contexts[1:]] == ["The second.", "The last."]
    assert one(read(lines(NESTED))).contexts == (Context("It leaves at ten.", "c"),)
    assert one(read(lines(TRACE))).contexts == (Context("It leaves at ten.", "", "f.md"),)
    assert one(read(lines(*COLUMNS))).references == one(read(lines(TRACE))).references == ("ten",)


def test_a_reranker_has_the_last_word_and_two_searches_are_joined_each_chunk_once() -> None:
    reranker = span("RERANKER", "ccc", "a", **{"reranker.output_documents.0.document.content": "Best."})
    found = read(lines(ROOT, RETRIEVER, reranker))
    assert [chunk.text for chunk in one(found).contexts] == ["Best."] and "what the reranker gave" in found.remarks[0]
    again = RUNS[1] | {"id": "r4", "run_type": "chain", "name": "rerank", "outputs": {"documents": ["Best."]}}
    assert one(read(lines(*RUNS, again))).contexts == (Context("Best."),)
    whole = RUNS[0] | {"name": "RAG with rerank", "outputs": TOLD}
    assert one(read(lines(whole))).answer == "At ten.", "the step that holds the others is no reranker"
    found = read(lines(ROOT, RETRIEVER, RETRIEVER | {"context": {"trace_id": "t1", "span_id": "ccc"}}))
    assert len(one(found).contexts) == 3 and "search more than once" in found.remarks[0]


def test_frames_one_after_the_other_are_several_traces() -> None:
    page = {"data": [RETRIEVER, ROOT], "next_cursor": None}
    for first in (page, OTLP):
        other = json.loads(json.dumps(first).replace('"t1"', '"t2"'))
        for text in (lines(first, other), json.dumps(first, indent=1) + json.dumps(other)):
            found = read(text)
            assert [one.id for one in found.records] == ["t1", "t2"] and not found.problems


def test_a_trace_that_retrieved_nothing_is_refused_and_so_is_a_span_without_one() -> None:
    other = ROOT | {"context": {"trace_id": "t2", "span_id": "x"}}
    found = read(lines(ROOT, RETRIEVER, other, {"span_kind": "LLM", "attributes": {}}))
    assert len(found.records) == 1 and [problem.row for problem in found.problems] == [3, 4]
    assert "Expected a step that retrieves, or an output with chunks, found chain" in found.problems[0].message
    assert "trace_id" in found.problems[1].message
    bare = read(lines(TRACE, {"id": "t2", "input": "Where?", "output": "There."}))
    assert len(bare.records) == 1 and "download the traces as JSON" in bare.problems[0].message
    failed = read(lines(RUNS[0] | {"outputs": None, "error": "ValueError: no"}, RUNS[1]))
    assert not failed.records and "ended with an error: ValueError: no" in failed.failure
    assert "run_type" in read(lines({"question": "When?", "contexts": ["a"]}), "langsmith").failure


def test_a_right_answer_in_an_object_is_not_the_answer_of_the_log() -> None:
    item = {"input": {"question": "When?", "contexts": ["a"]}, "expectedOutput": {"answer": "ten"}, "metadata": None}
    assert (one(read(lines(item))).answer, one(read(lines(item))).references) == ("", ("ten",))


def test_the_data_frames_of_phoenix_for_evaluation() -> None:
    head, rest = "context.span_id,document_position,context.trace_id,input,", "s1,0,t1,When?,At ten.,0.8\n"
    found = read(f"{head}reference,document_score\n{rest}s1,1,t1,When?,At six.,0.2\ns2,0,t2,Where?,There.,0.5\n")
    assert found.shape == "phoenix-documents" and [len(one.contexts) for one in found.records] == [2, 1]
    assert found.records[0].contexts[0] == Context("At ten.", "", "", 0.8) and found.records[0].references == ()
    assert one(read("context.span_id,input,output,reference\ns1,When?,Ten.,At ten.\n")).answer == "Ten."


def test_answers_of_haystack_are_those_of_its_pipeline_and_not_the_right_ones() -> None:
    documents = [{"content": "At ten.", "meta": {}, "score": 0.5}]
    answers = [{"data": "Ten.", "documents": documents}]
    found = read(lines({"query": "When?", "answers": answers, "documents": documents}))
    assert found.shape == "haystack"
    assert (one(found).answer, one(found).references) == ("Ten.", ())
    assert one(read(lines({"query": "When?", "documents": documents, "answers": ["Ten."]}))).references == ("Ten.",)


def test_the_text_of_a_question_or_an_answer_is_not_taken_for_a_chunk() -> None:
    bedrock = {"input": {"text": "When?"}, "output": {"text": "Ten."}, "citations": [{"retrievedReferences": []}]}
    assert "a column with the chunks, found the columns" in read(lines(bedrock)).failure


def test_langsmith_examples_have_right_answers_and_experiments_both() -> None:
    example = {"id": "e", "inputs": {"question": "When?", "contexts": ["a"]}, "outputs": {"answer": "ten"}}
    flat = {
        "inputs.question": "When?", "outputs.answer": "Ten.", "outputs.documents": "['a']", "reference.answer": "ten",
    }  # fmt: skip
    beside = example | {"outputs": {"answer": "Ten."}, "reference_outputs": {"answer": "ten"}}
    for row, answer in ((example, ""), (flat, "Ten."), (beside, "Ten.")):
        record = one(found := read(lines(row)))
        assert (found.shape, record.question, record.answer, record.references, record.contexts) == (
            "langsmith", "When?", answer, ("ten",), (Context("a"),),
        )  # fmt: skip


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_a_log_is_the_same_after_it_was_written() -> None:
    found = read(json.dumps({"data": [ROOT, RETRIEVER]}))
    log = RetrievalLog("mine", found.shape, found.records)
    again = parse_log("mine", log.to_jsonl().encode())
    assert again == log and again.fingerprint == log.fingerprint and again.find("t1") == log.records[0]


def test_passages_have_ids_of_their_own_and_the_scores_of_the_log_beside_no_cosine() -> None:
    contexts = (Context("a", "x", "f.md", 3.5, 2), Context("b", "x"), Context("c"))
    first, second, third = passages_of(LogRecord("r", 1, "When?", contexts))
    assert [one.id for one in (first, second, third)] == ["x", "x 2", "chunk 3"]
    assert first.scores == (("log", 3.5),) and first.score("cosine") is None and first.page == 2
    assert (second.source, third.ordinal, third.found_by) == ("unnamed source", 2, ("log",))
