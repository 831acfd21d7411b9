"""Logs in the shapes that the tools document, and in those that people write by hand; bad rows and hostile ones."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("question", ["question", "Query", "user input", "input", "prompt"])
@pytest.mark.parametrize("contexts", ["contexts", "retrieved_contexts", "documents", "Passages", "source_documents"])
def test_common_names_of_columns_are_known(question: str, contexts: str) -> None:
    record = one(read(lines({question: "When?", contexts: ["At ten.", "At six."], "response": "Ten.", "truth": "x"})))
    assert (record.question, [chunk.text for chunk in record.contexts]) == ("When?", ["At ten.", "At six."])
    assert record.answer == "Ten." and record.references == () and record.row == 1


CHUNKS: dict[str, Any] = {
    "texts": ["At ten."],
    "objects": [{"text": "At ten.", "id": "c1", "score": 0.5, "metadata": {"source": "f.md", "page": 3}}],
    "LangChain": [{"page_content": "At ten.", "metadata": {"source": "f.md", "id": "c1", "score": 0.5, "page": 3}}],
    "LangChain in JavaScript": [{"pageContent": "At ten.", "metadata": {"source": "f.md", "id": "c1"}}],
    "one of several questions": [["At ten.", "At six."]],
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


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02" * 50, b"{" * 5000, b"[" * 5000, b'{"a": 1}', b"PK\x03\x04"])
def test_what_is_no_log_is_told_and_never_raises(content: bytes) -> None:
    found = read(content)
    assert not found.records and found.failure


def test_rows_without_chunks_that_are_alike_otherwise_make_no_fault() -> None:
    found = read(lines(*[{"q": "a"}] * 2, {"question": "When?", "contexts": ["a"]}))
    assert len(found.records) == 1 and len(found.problems) == 2


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


ROOT = span("CHAIN", "a", None, **{"input.value": "When does it leave?", "output.value": "At ten."})
RETRIEVER = span(
    "RETRIEVER", "bb", "a",
    **{
        "input.value": "leave when", "retrieval.documents.0.document.content": "It leaves at ten.",
        "retrieval.documents.0.document.score": 0.8, "retrieval.documents.0.document.id": "c1",
        "retrieval.documents.0.document.metadata": '{"source": "f.md", "page": 2}',
        "retrieval.documents.10.document.content": "The last.", "retrieval.documents.2.document.content": "The second.",
    },
)  # fmt: skip
FIRST = Context("It leaves at ten.", "c1", "f.md", 0.8, 2)


def test_phoenix_spans_with_flat_attributes() -> None:
    found = read(json.dumps({"data": [RETRIEVER, ROOT], "next_cursor": None}))
    record = one(found)
    assert found.shape == "openinference" and record.id == "t1"
    assert (record.question, record.answer) == ("When does it leave?", "At ten.")
    assert record.contexts[0] == FIRST and [chunk.text for chunk in record.contexts[1:]] == ["The second.", "The last."]


def test_phoenix_spans_as_a_table_of_columns() -> None:
    documents = [{"document.content": "It leaves at ten.", "document.score": 0.8, "document.id": "c1"}]
    rows = (
        {"name": "query", "span_kind": "CHAIN", "parent_id": None, "context.trace_id": "t1", "context.span_id": "a",
         "attributes.input.value": '{"query": "When?"}', "attributes.input.mime_type": "application/json",
         "attributes.output.value": '{"result": "At ten."}', "attributes.metadata": {"ground_truth": "ten"}},
        {"name": "retrieve", "span_kind": "RETRIEVER", "parent_id": "a", "context.trace_id": "t1",
         "context.span_id": "b", "attributes.retrieval.documents": documents},
    )  # fmt: skip
    record = one(read(lines(*rows)))
    assert (record.question, record.answer, record.references) == ("When?", "At ten.", ("ten",))
    assert record.contexts == (Context("It leaves at ten.", "c1", "", 0.8),)


def test_spans_of_opentelemetry_and_nested_attributes() -> None:
    flat = {"openinference.span.kind": "RETRIEVER", "input.value": "When?",
            "retrieval.documents.0.document.content": "At ten."}  # fmt: skip
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in flat.items()]
    otlp = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "s", "attributes": listed}]}]}]}
    assert one(read(json.dumps(otlp))).contexts[0].text == "At ten."
    assert [one.row for one in read(lines(otlp, json.loads(json.dumps(otlp).replace('"t"', '"u"')))).records] == [1, 2]
    nested = {"openinference": {"span": {"kind": "RETRIEVER"}}, "input": {"value": "When?"},
              "retrieval": {"documents": [{"document": {"content": "At ten.", "id": "c"}}]}}  # fmt: skip
    assert one(read(lines({"trace_id": "t", "span_id": "s", "attributes": nested}))).contexts[0].id == "c"


def test_the_answer_of_a_trace_without_one_is_that_of_its_model_and_a_reranker_has_the_last_word() -> None:
    root = span("CHAIN", "a", None, **{"input.value": "When?"})
    model = span("LLM", "cccc", "a", **{
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "At ten.",
    })  # fmt: skip
    reranker = span("RERANKER", "ccc", "a", **{"reranker.output_documents.0.document.content": "Best."})
    found = read(lines(root, RETRIEVER, reranker, model))
    assert one(found).answer == "At ten." and [chunk.text for chunk in one(found).contexts] == ["Best."]
    assert "what the reranker gave" in found.remarks[0]


def test_two_searches_of_a_trace_are_joined_and_each_chunk_comes_once() -> None:
    found = read(lines(ROOT, RETRIEVER, RETRIEVER | {"context": {"trace_id": "t1", "span_id": "ccc"}}))
    assert len(one(found).contexts) == 3 and "search more than once" in found.remarks[0]


def test_a_trace_that_retrieved_nothing_is_refused_and_so_is_a_span_without_one() -> None:
    other = ROOT | {"context": {"trace_id": "t2", "span_id": "x"}}
    found = read(lines(ROOT, RETRIEVER, other, {"span_kind": "LLM", "attributes": {}}))
    assert len(found.records) == 1 and [problem.row for problem in found.problems] == [3, 4]
    assert "Expected a step that retrieves, or an output with chunks, found CHAIN" in found.problems[0].message
    assert "trace_id" in found.problems[1].message


def test_pages_of_an_api_one_after_the_other_and_a_session_are_frames() -> None:
    page = {"data": [RETRIEVER, ROOT], "next_cursor": None}
    other = json.loads(json.dumps(page).replace('"t1"', '"t2"'))
    for text in (lines(page, other), json.dumps(page, indent=1) + json.dumps(other)):
        found = read(text)
        assert [one.id for one in found.records] == ["t1", "t2"] and not found.problems
    session = {"id": "s", "traces": [{"id": "t1", "input": "When?", "output": "Ten.", "observations": OBSERVATIONS}]}
    assert one(read(json.dumps(session))).id == "t1"


def test_a_right_answer_in_an_object_is_not_the_answer_of_the_log() -> None:
    item = {"input": {"question": "When?", "contexts": ["a"]}, "expectedOutput": {"answer": "ten"}, "metadata": None}
    assert (one(read(lines(item))).answer, one(read(lines(item))).references) == ("", ("ten",))


def test_the_data_frames_of_phoenix_for_evaluation() -> None:
    head, rest = "context.span_id,document_position,context.trace_id,input,", "s1,0,t1,When?,At ten.,0.8\n"
    found = read(f"{head}reference,document_score\n{rest}s1,1,t1,When?,At six.,0.2\ns2,0,t2,Where?,There.,0.5\n")
    assert found.shape == "phoenix-documents" and [len(one.contexts) for one in found.records] == [2, 1]
    assert found.records[0].contexts[0] == Context("At ten.", "", "", 0.8) and found.records[0].references == ()
    assert one(read("context.span_id,input,output,reference\ns1,When?,Ten.,At ten.\n")).answer == "Ten."


DOCUMENTS = [{"page_content": "It leaves at ten.", "metadata": {"source": "f.md"}, "type": "Document"}]
OBSERVATIONS = [
    {"id": "o1", "traceId": "t1", "type": "RETRIEVER", "name": "vector store", "input": "When?", "output": DOCUMENTS},
    {"id": "o2", "traceId": "t1", "type": "GENERATION", "name": "ChatOpenAI", "startTime": "2026",
     "output": {"role": "assistant", "content": "At ten."}},
]  # fmt: skip


@pytest.mark.parametrize("type_", ["RETRIEVER", "SPAN"])
def test_a_langfuse_trace_with_its_observations(type_: str) -> None:
    observations = [OBSERVATIONS[0] | {"type": type_, "name": "retrieve-context"}, OBSERVATIONS[1]]
    trace = {
        "id": "t1", "name": "rag", "input": {"question": "When?"}, "output": None, "observations": observations,
        "metadata": {"expected_output": "ten"}, "scores": [],
    }  # fmt: skip
    for content in (trace, {"data": [trace], "meta": {"page": 1}}, {"trace": trace, "observations": observations}):
        found = read(json.dumps(content, indent=1))
        record = one(found)
        assert found.shape == "langfuse" and record.references == ("ten",) and record.id == "t1"
        assert (record.question, record.answer) == ("When?", "At ten.")
        assert record.contexts == (Context("It leaves at ten.", "", "f.md"),)


def test_langfuse_observations_one_a_row_with_texts_as_they_are_exported() -> None:
    rows = [one | {"output": json.dumps(one["output"]), "trace_id": one["traceId"]} for one in OBSERVATIONS]
    for row in rows:
        del row["traceId"]
    record = one(read(lines(*rows)))
    assert (record.question, record.answer, len(record.contexts)) == ("When?", "At ten.", 1)


def test_a_trace_that_tells_its_chunks_needs_no_step_that_retrieves() -> None:
    output = {"result": "At ten.", "source_documents": DOCUMENTS}
    trace = {"id": "t1", "input": {"query": "When?"}, "output": output, "observations": ["o1", "o2"]}
    run = {"id": "r", "trace_id": "r", "run_type": "chain", "inputs": {"input": "When?"}, "outputs": output}
    for row in (trace, run):
        record = one(read(lines(row)))
        assert (record.answer, record.contexts) == ("At ten.", (Context("It leaves at ten.", "", "f.md"),))


def test_a_langfuse_chain_whose_name_has_retrieval_in_it_is_no_search() -> None:
    root = {"id": "o0", "traceId": "t1", "type": "CHAIN", "name": "RetrievalQA", "input": "When?",
            "output": {"text": "At ten."}}  # fmt: skip
    record = one(read(lines(root, *OBSERVATIONS)))
    assert [chunk.text for chunk in record.contexts] == ["It leaves at ten."] and record.answer == "At ten."


def test_langfuse_traces_without_their_observations_are_refused_with_what_helps() -> None:
    whole = {"id": "t1", "input": "When?", "output": "Ten.", "observations": OBSERVATIONS}
    bare = {"id": "t2", "input": "Where?", "output": "There."}
    found = read(lines(whole, bare))
    assert len(found.records) == 1 and "download the traces as JSON" in found.problems[0].message


RUNS = [
    {"id": "r1", "trace_id": "r1", "parent_run_id": None, "run_type": "chain", "name": "RAG",
     "inputs": {"question": "When?"}, "outputs": {"answer": "At ten."}, "error": None},
    {"id": "r2", "trace_id": "r1", "parent_run_id": "r1", "run_type": "retriever", "name": "VectorStoreRetriever",
     "inputs": {"query": "when"}, "outputs": {"documents": DOCUMENTS}},
    {"id": "r3", "trace_id": "r1", "parent_run_id": "r1", "run_type": "llm", "inputs": {"messages": []},
     "outputs": {"generations": [[{"text": "Generated."}]]}},
]  # fmt: skip


def test_langsmith_runs_one_a_row_and_as_a_tree() -> None:
    tree = RUNS[0] | {"child_runs": RUNS[1:]}
    for content in (lines(*RUNS), lines(tree), json.dumps({"runs": RUNS})):
        found = read(content)
        record = one(found)
        assert found.shape == "langsmith" and (record.question, record.answer) == ("When?", "At ten.")
        assert record.contexts == (Context("It leaves at ten.", "", "f.md"),)


def test_langsmith_messages_and_what_a_function_returned() -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "user", "content": "When?"}]
    root = RUNS[0] | {"inputs": {"messages": said}, "outputs": None}
    record = one(read(lines(root, RUNS[1] | {"outputs": {"output": DOCUMENTS}}, RUNS[2])))
    assert (record.question, record.answer, len(record.contexts)) == ("When?", "Generated.", 1)
    assert "run_type" in read(lines({"question": "When?", "contexts": ["a"]}), "langsmith").failure


def test_a_langsmith_run_that_failed_is_refused() -> None:
    found = read(lines(RUNS[0] | {"outputs": None, "error": "ValueError: no"}, RUNS[1]))
    assert not found.records and "ended with an error: ValueError: no" in found.failure


def test_langsmith_examples_have_right_answers_and_experiments_both() -> None:
    example = {"id": "e", "inputs": {"question": "When?", "contexts": ["a"]}, "outputs": {"answer": "ten"}}
    flat = {
        "inputs.question": "When?",
        "outputs.answer": "Ten.",
        "outputs.documents": "['a']",
        "reference.answer": "ten",
    }
    beside = example | {"outputs": {"answer": "Ten."}, "reference_outputs": {"answer": "ten"}}
    for row, answer in ((example, ""), (flat, "Ten."), (beside, "Ten.")):
        record = one(found := read(lines(row)))
        assert (found.shape, record.question, record.answer, record.references) == (
            "langsmith", "When?", answer, ("ten",),
        )  # fmt: skip
        assert record.contexts == (Context("a"),)


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
