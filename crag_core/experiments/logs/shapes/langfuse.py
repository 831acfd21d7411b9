"""Langfuse traces: a downloaded trace with its `observations`, answers of the API, or exported observations, one a row.

Shapes: https://langfuse.com/faq/all/export-single-trace-or-session and
https://langfuse.com/docs/api-and-data-platform/features/export-from-ui
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.logs.rows import LogRow
from crag_core.experiments.logs.shapes.spans import Joined, Kind, Span, joined
from crag_core.experiments.logs.values import chunks_of, opened

READ_FROM = (
    ("question", "input of the trace, else of the retriever"),
    ("contexts", "output of observations of type RETRIEVER, else of a step named retriev… or search…"),
    ("scores", "score of each document"),
    ("ids", "id of each document"),
    ("sources", "metadata of each document"),
    ("answer", "output of the trace, else of the last GENERATION"),
    ("ground_truth", "expectedOutput or ground_truth, also in the metadata of the trace"),
    ("id", "traceId"),
)
_TYPES = {"SPAN", "GENERATION", "EVENT", "RETRIEVER", "AGENT", "TOOL", "CHAIN", "EMBEDDING", "EVALUATOR", "GUARDRAIL"}
_UNTOLD = ("SPAN", "TOOL", "EVENT", "")
"""Types of a step that may be anything; its name tells."""
_NAMED = ("retriev", "search", "vector", "lookup")


def fits(rows: Sequence[LogRow]) -> bool:
    return any(_has_observations(row.values) or _is_observation(row.values) for row in rows)


def read(rows: Sequence[LogRow], chosen: Mapping[str, str]) -> Joined:
    return joined(rows, _spans_of, chosen)


def _has_observations(values: Mapping[str, Any]) -> bool:
    """A trace with its steps, or the frame {"trace": …, "observations": […]} of a download."""
    return isinstance(opened(values.get("observations")), list)


def _is_observation(values: Mapping[str, Any]) -> bool:
    return str(values.get("type", "")).upper() in _TYPES and bool(values.get("traceId") or values.get("trace_id"))


def _spans_of(row: LogRow) -> Iterator[Span]:
    values = row.values
    if _has_observations(values):
        inner = opened(values.get("trace"))
        whole = dict(inner) if isinstance(inner, Mapping) else {k: v for k, v in values.items() if k != "observations"}
        trace = str(whole.get("id") or f"row {row.number}")
        yield Span(
            row.number, trace, id=f"trace {trace}", parent="", kind=Kind.OTHER, name="trace",
            input=whole.get("input"), output=whole.get("output"), fields=_with_metadata(whole),
        )  # fmt: skip
        for one in opened(values["observations"]):
            if isinstance(one, Mapping):
                yield _span(row.number, trace, one, under=f"trace {trace}")
        return
    trace = str(values.get("traceId") or values.get("trace_id") or "")
    if trace:
        yield _span(row.number, trace, values, under="")
    elif values.get("id") and {"input", "output"} & values.keys():  # a row of the table of traces
        raise BadRecord(
            "Expected a trace with its observations, found only its input and output.",
            hint="Export the observations, or download the traces as JSON.",
        )
    else:
        raise BadRecord("Expected an observation with a traceId, found none.")


def _span(row: int, trace: str, one: Mapping[str, Any], under: str) -> Span:
    type_, name, output = str(one.get("type", "")).upper(), str(one.get("name") or ""), opened(one.get("output"))
    kind = Kind.MODEL if type_ == "GENERATION" else Kind.OTHER
    if type_ == "RETRIEVER" or (type_ in _UNTOLD and _retrieves(name, output)):
        kind = Kind.RETRIEVER
    elif "rerank" in name.lower() and _holds_chunks(output):
        kind = Kind.RERANKER
    return Span(
        row, trace, str(one.get("id") or ""), str(one.get("parentObservationId") or one.get("parent_observation_id") or
        under), kind, name or type_, one.get("input"), output, documents=output,
        error=str(one.get("statusMessage") or "") if str(one.get("level", "")).upper() == "ERROR" else "",
        started=str(one.get("startTime") or one.get("start_time") or ""), fields=_with_metadata(one),
    )  # fmt: skip


def _retrieves(name: str, output: Any) -> bool:
    is_named = any(part in name.lower() for part in _NAMED) and "rerank" not in name.lower()
    return is_named and _holds_chunks(output)


def _holds_chunks(output: Any) -> bool:
    try:
        return not isinstance(output, str) and chunks_of(output) is not None
    except BadRecord:
        return False


def _with_metadata(whole: Mapping[str, Any]) -> dict[str, Any]:
    return {**whole, "metadata": opened(whole.get("metadata"))}
