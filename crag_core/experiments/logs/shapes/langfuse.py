"""Langfuse traces: a downloaded trace with its `observations`, answers of the API, or exported observations, one a row.

Shapes: https://langfuse.com/faq/all/export-single-trace-or-session and
https://langfuse.com/docs/api-and-data-platform/features/export-from-ui
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Row
from crag_core.experiments.logs.shapes.spans import Kind, Span, text_at
from crag_core.experiments.logs.values import chunks_of, opened

_TYPES = {"SPAN", "GENERATION", "EVENT", "RETRIEVER", "AGENT", "TOOL", "CHAIN", "EMBEDDING", "EVALUATOR", "GUARDRAIL"}
_UNTOLD = ("SPAN", "TOOL", "EVENT", "")
"""Types of a step that may be anything; its name tells."""
_NAMED = ("retriev", "search", "vector", "lookup")


def fits(rows: Sequence[Row]) -> bool:
    return any(_observations(row.values) is not None or _is_observation(row.values) for row in rows)


def _observations(values: Mapping[str, Any]) -> list[Any] | None:
    """Of a trace with its steps, or of the frame {"trace": …, "observations": […]} of a download."""
    found = opened(values.get("observations"))
    return found if isinstance(found, list) else None


def _is_observation(values: Mapping[str, Any]) -> bool:
    return text_at(values, "type").upper() in _TYPES and bool(text_at(values, "traceId", "trace_id"))


def spans_of(row: Row) -> Iterator[Span]:
    values = row.values
    if (observations := _observations(values)) is not None:
        inner = opened(values.get("trace"))
        whole = inner if isinstance(inner, Mapping) else values
        trace = text_at(whole, "id") or f"row {row.number}"
        yield Span(
            row.number, trace, id=f"trace {trace}", parent="", kind=Kind.OTHER, name="trace",
            input=whole.get("input"), output=whole.get("output"), fields=_with_metadata(whole),
        )  # fmt: skip
        yield from (_span(row.number, trace, one, f"trace {trace}") for one in observations if isinstance(one, Mapping))
    elif trace := text_at(values, "traceId", "trace_id"):
        yield _span(row.number, trace, values, under="")
    elif values.get("id") and {"input", "output"} & values.keys():  # a row of the table of traces
        raise BadRecord(
            "Expected a trace with its observations, found only its input and output.",
            hint="Export the observations, or download the traces as JSON.",
        )
    else:
        raise BadRecord("Expected an observation with a traceId, found none.")


def _span(row: int, trace: str, one: Mapping[str, Any], under: str) -> Span:
    type_, name, output = text_at(one, "type").upper(), text_at(one, "name"), opened(one.get("output"))
    is_reranker = "rerank" in name.lower()
    is_search = any(part in name.lower() for part in _NAMED) and not is_reranker
    kind = Kind.MODEL if type_ == "GENERATION" else Kind.OTHER
    if type_ == "RETRIEVER" or (type_ in _UNTOLD and is_search and _holds_chunks(output)):
        kind = Kind.RETRIEVER
    elif is_reranker and _holds_chunks(output):
        kind = Kind.RERANKER
    return Span(
        row=row,
        trace=trace,
        id=text_at(one, "id"),
        parent=text_at(one, "parentObservationId", "parent_observation_id") or under,
        kind=kind,
        name=name or type_,
        input=one.get("input"),
        output=output,
        documents=output,
        error=text_at(one, "statusMessage") if text_at(one, "level").upper() == "ERROR" else "",
        started=text_at(one, "startTime", "start_time"),
        fields=_with_metadata(one),
    )


def _holds_chunks(output: Any) -> bool:
    try:
        return not isinstance(output, str) and chunks_of(output) is not None
    except BadRecord:
        return False


def _with_metadata(whole: Mapping[str, Any]) -> dict[str, Any]:
    return {**whole, "metadata": opened(whole.get("metadata"))}
