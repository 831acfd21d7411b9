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
from crag_core.experiments.logs.rows import LogRow
from crag_core.experiments.logs.shapes.spans import Joined, Kind, Span, joined
from crag_core.experiments.logs.values import opened

READ_FROM = (
    ("question", "inputs of the root run, else of the retriever"),
    ("contexts", "outputs.documents of runs with run_type retriever"),
    ("scores", "score in the metadata of each document"),
    ("ids", "id of each document"),
    ("sources", "metadata of each document"),
    ("answer", "outputs of the root run, else of the last run of type llm"),
    ("ground_truth", "reference_outputs, or ground_truth in the metadata of the root run"),
    ("id", "trace_id"),
)
_TYPES = ("llm", "chain", "tool", "retriever", "embedding", "prompt", "parser")
_MOST_DEEP = 40


def fits(rows: Sequence[LogRow]) -> bool:
    return any(str(row.values.get("run_type", "")).lower() in _TYPES or _is_example(row.values) for row in rows)


def _is_example(values: Mapping[str, Any]) -> bool:
    return "run_type" not in values and all(isinstance(_held(values, name), Mapping) for name in ("inputs", "outputs"))


def read(rows: Sequence[LogRow], chosen: Mapping[str, str]) -> Joined:
    return joined(rows, _spans_of, chosen)


def _spans_of(row: LogRow) -> Iterator[Span]:
    if _is_example(row.values):
        yield _example(row)
        return
    if str(row.values.get("run_type", "")).lower() not in _TYPES:
        raise BadRecord(
            f"Expected a run_type such as retriever or chain, found {str(row.values.get('run_type'))[:60]!r}."
        )
    trace = str(row.values.get("trace_id") or "")
    if not trace and (row.values.get("parent_run_id") or not row.values.get("id")):
        raise BadRecord("Expected a run with a trace_id, found none.")
    yield from _runs(row.number, trace or str(row.values["id"]), row.values, "", 0)


def _example(row: LogRow) -> Span:
    """Its outputs are the right ones, unless those stand beside them."""
    inputs, outputs = _held(row.values, "inputs"), _held(row.values, "outputs")
    right = _held(row.values, "reference_outputs") or _held(row.values, "reference")
    if right is None:
        right, outputs = outputs, None
    fields = {"inputs": inputs, "outputs": outputs, "reference_outputs": right}
    return Span(row.number, f"row {row.number}", "", "", Kind.OTHER, "example", inputs, outputs, fields=fields)


def _runs(row: int, trace: str, run: Mapping[str, Any], parent: str, depth: int) -> Iterator[Span]:
    inputs, outputs = _held(run, "inputs"), _held(run, "outputs")
    type_, name = str(run.get("run_type", "")).lower(), str(run.get("name") or "")
    kind = {"retriever": Kind.RETRIEVER, "llm": Kind.MODEL}.get(type_, Kind.OTHER)
    if "rerank" in name.lower() and isinstance(outputs, Mapping) and isinstance(outputs.get("documents"), list):
        kind = Kind.RERANKER
    id_ = str(run.get("id") or "")
    yield Span(
        row, trace, id_, str(run.get("parent_run_id") or parent), kind, name or type_, inputs, outputs,
        documents=_documents(outputs), error=str(run.get("error") or ""), started=str(run.get("start_time") or ""),
        fields={**run, "inputs": inputs, "outputs": outputs, "extra": opened(run.get("extra"))},
    )  # fmt: skip
    for child in opened(run.get("child_runs")) or [] if depth < _MOST_DEEP else []:
        if isinstance(child, Mapping):
            yield from _runs(row, trace, child, id_, depth + 1)


def _held(run: Mapping[str, Any], name: str) -> Any:
    """`inputs` or `outputs`, which a table has in columns such as `inputs.question`."""
    if name in run:
        return opened(run[name]) or None
    found = {key.removeprefix(f"{name}."): opened(one) for key, one in run.items() if key.startswith(f"{name}.")}
    return {key: one for key, one in found.items() if one not in (None, "")} or None


def _documents(outputs: Any) -> Any:
    """Under `documents`, or `output` where a function returned the list."""
    if isinstance(outputs, Mapping):
        return next((outputs[name] for name in ("documents", "output") if name in outputs), outputs)
    return outputs
