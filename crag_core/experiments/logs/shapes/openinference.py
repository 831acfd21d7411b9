"""OpenInference spans, as Phoenix exports them: https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md

A row is a span: of `get_spans_dataframe` (columns such as `attributes.input.value`), of Phoenix's REST API (an object
with `attributes`, flat or nested), or of OTLP (`attributes` as a list of keys and values).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Row
from crag_core.experiments.logs.fields import value_at
from crag_core.experiments.logs.shapes.spans import Kind, Span, text_at
from crag_core.experiments.logs.values import opened

_KINDS = {"RETRIEVER": Kind.RETRIEVER, "RERANKER": Kind.RERANKER, "LLM": Kind.MODEL}
_DOCUMENTS = {Kind.RETRIEVER: "retrieval.documents", Kind.RERANKER: "reranker.output_documents"}
_TRACE = ("context.trace_id", "trace_id", "traceId")
_LISTED = re.compile(r"(retrieval\.documents|reranker\.output_documents|llm\.(?:in|out)put_messages)\.(\d+)\.(.+)")
_MOST_LISTED = 1000


def fits(rows: Sequence[Row]) -> bool:
    has_trace = any(text_at(row.values, *_TRACE) for row in rows)
    return has_trace and any(_kind_of(_attributes(row.values), row.values) in _KINDS for row in rows)


def spans_of(row: Row) -> Iterator[Span]:
    values, attributes = row.values, _attributes(row.values)
    trace = text_at(values, *_TRACE)
    if not trace:
        raise BadRecord("Expected a span with a trace_id, found none.")
    named = _kind_of(attributes, values)
    kind = _KINDS.get(named, Kind.OTHER)
    output = value_at(attributes, "output.value")
    if kind is Kind.MODEL:
        output = value_at(attributes, "llm.output_messages") or output
    yield Span(
        row=row.number,
        trace=trace,
        id=text_at(values, "context.span_id", "span_id", "spanId", "id"),
        parent=text_at(values, "parent_id", "parentSpanId", "parent_span_id"),
        kind=kind,
        name=named or text_at(values, "name"),
        input=value_at(attributes, "input.value"),
        output=output,
        documents=value_at(attributes, _DOCUMENTS[kind]) if kind in _DOCUMENTS else None,
        error=text_at(values, "status_message") if text_at(values, "status_code").upper().endswith("ERROR") else "",
        started=text_at(values, "start_time", "startTimeUnixNano"),
        fields={**attributes, "attributes": attributes, "metadata": opened(value_at(attributes, "metadata"))},
    )


def _attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """By their dotted names, wherever the export has them; lists that were laid out flat are lists again."""
    held = opened(values.get("attributes"))
    found: dict[str, Any] = {}
    if isinstance(held, list):
        found = {str(one.get("key")): _otlp(one.get("value")) for one in held if isinstance(one, Mapping)}
    elif isinstance(held, Mapping):
        found = dict(held)
    found |= {name.removeprefix("attributes."): one for name, one in values.items() if name.startswith("attributes.")}
    lists: dict[str, dict[int, dict[str, Any]]] = {}
    for name in list(found):
        if (listed := _LISTED.fullmatch(name)) and int(listed[2]) < _MOST_LISTED:
            lists.setdefault(listed[1], {}).setdefault(int(listed[2]), {})[listed[3]] = found.pop(name)
    return found | {name: [items[at] for at in sorted(items)] for name, items in lists.items()}


def _otlp(value: Any) -> Any:
    """A value of OTLP's JSON, {"stringValue": …} and its like."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    name, inner = next(iter(value.items()))
    if name == "arrayValue" and isinstance(inner, Mapping):
        return [_otlp(one) for one in inner.get("values") or []]
    return inner


def _kind_of(attributes: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    named = value_at(attributes, "openinference.span.kind") or values.get("span_kind")
    return named.upper() if isinstance(named, str) else ""
