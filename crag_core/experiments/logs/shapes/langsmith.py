"""LangSmith runs: https://docs.langchain.com/langsmith/run-data-format, of retrievers
https://docs.langchain.com/langsmith/log-retriever-trace

A row is a run with its `trace_id`, a whole trace with its runs in `child_runs`, or an example of a data set or an
experiment, with the right answer in its `outputs`, or in `reference_outputs` beside those of the system:
https://docs.langchain.com/langsmith/manage-datasets
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Row
from crag_core.experiments.logs.shapes.spans import Kind, Span, text_at
from crag_core.experiments.logs.values import opened

_TYPES = ("llm", "chain", "tool", "retriever", "embedding", "prompt", "parser")
_KINDS = {"retriever": Kind.RETRIEVER, "llm": Kind.MODEL}
_MOST_DEEP = 40


def fits(rows: Sequence[Row]) -> bool:
    return any(_type_of(row.values) in _TYPES or _is_example(row.values) for row in rows)


def _type_of(values: Mapping[str, Any]) -> str:
    return text_at(values, "run_type").lower()


def _is_example(values: Mapping[str, Any]) -> bool:
    return "run_type" not in values and all(isinstance(_held(values, name), Mapping) for name in ("inputs", "outputs"))


def spans_of(row: Row) -> Iterator[Span]:
    if _is_example(row.values):
        yield _example(row)
        return
    if _type_of(row.values) not in _TYPES:
        found = str(row.values.get("run_type"))[:60]
        raise BadRecord(f"Expected a run_type such as retriever or chain, found {found!r}.")
    trace = text_at(row.values, "trace_id")
    if not trace and (row.values.get("parent_run_id") or not row.values.get("id")):
        raise BadRecord("Expected a run with a trace_id, found none.")
    yield from _runs(row.number, trace or str(row.values["id"]), row.values, "", 0)


def _example(row: Row) -> Span:
    """Its outputs are the right ones, unless those stand beside them."""
    inputs, outputs = _held(row.values, "inputs"), _held(row.values, "outputs")
    right = _held(row.values, "reference_outputs") or _held(row.values, "reference")
    if right is None:
        right, outputs = outputs, None
    fields = {"inputs": inputs, "outputs": outputs, "reference_outputs": right}
    return Span(row.number, f"row {row.number}", "", "", Kind.OTHER, "example", inputs, outputs, fields=fields)


def _runs(row: int, trace: str, run: Mapping[str, Any], parent: str, depth: int) -> Iterator[Span]:
    inputs, outputs = _held(run, "inputs"), _held(run, "outputs")
    name, id_, documents = text_at(run, "name"), text_at(run, "id"), outputs
    if isinstance(outputs, Mapping):  # a function that returned a list has it under output
        documents = next((outputs[key] for key in ("documents", "output") if key in outputs), outputs)
    is_reranker = "rerank" in name.lower() and isinstance(outputs, Mapping) and "documents" in outputs
    yield Span(
        row=row,
        trace=trace,
        id=id_,
        parent=text_at(run, "parent_run_id") or parent,
        kind=Kind.RERANKER if is_reranker else _KINDS.get(_type_of(run), Kind.OTHER),
        name=name or _type_of(run),
        input=inputs,
        output=outputs,
        documents=documents,
        error=text_at(run, "error"),
        started=text_at(run, "start_time"),
        fields={**run, "inputs": inputs, "outputs": outputs, "extra": opened(run.get("extra"))},
    )
    for child in opened(run.get("child_runs")) or [] if depth < _MOST_DEEP else []:
        if isinstance(child, Mapping):
            yield from _runs(row, trace, child, id_, depth + 1)


def _held(run: Mapping[str, Any], name: str) -> Any:
    """`inputs` or `outputs`, which a table has in columns such as `inputs.question`."""
    if name in run:
        return opened(run[name]) or None
    found = {key.removeprefix(f"{name}."): opened(one) for key, one in run.items() if key.startswith(f"{name}.")}
    return {key: one for key, one in found.items() if one not in (None, "")} or None
