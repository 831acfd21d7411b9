"""OpenInference spans, as Phoenix exports them: https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md

A row is a span: of `get_spans_dataframe` (columns such as `attributes.input.value`), of Phoenix's REST API (an object
with `attributes`, flat or nested), or of OTLP (`attributes` as a list of keys and values).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.logs.rows import LogRow
from crag_core.experiments.logs.shapes.spans import Joined, Kind, Span, joined
from crag_core.experiments.logs.values import opened

READ_FROM = (
    ("question", "input.value of the root span, else of the retriever"),
    ("contexts", "retrieval.documents of RETRIEVER spans, or reranker.output_documents"),
    ("scores", "document.score"),
    ("ids", "document.id"),
    ("sources", "document.metadata"),
    ("answer", "output.value of the root span, else of the last LLM span"),
    ("ground_truth", "reference or ground_truth in the metadata of the root span"),
    ("id", "trace_id"),
)
_KINDS = {"RETRIEVER": Kind.RETRIEVER, "RERANKER": Kind.RERANKER, "LLM": Kind.MODEL}
_LISTED = re.compile(r"(retrieval\.documents|reranker\.output_documents|llm\.(?:in|out)put_messages)\.(\d+)\.(.+)")
_MOST_LISTED = 1000


def fits(rows: Sequence[LogRow]) -> bool:
    return any(_kind_of(_attributes(row.values), row.values) in _KINDS for row in rows) and any(
        _trace_of(row.values) for row in rows
    )


def read(rows: Sequence[LogRow], chosen: Mapping[str, str]) -> Joined:
    return joined(rows, _spans_of, chosen)


def _spans_of(row: LogRow) -> Iterator[Span]:
    values, attributes = row.values, _attributes(row.values)
    trace = _trace_of(values)
    if not trace:
        raise BadRecord("Expected a span with a trace_id, found none.")
    kind = _KINDS.get(_kind_of(attributes, values), Kind.OTHER)
    documents = {Kind.RETRIEVER: "retrieval.documents", Kind.RERANKER: "reranker.output_documents"}.get(kind, "")
    output = _at(attributes, "output.value")
    if kind is Kind.MODEL:
        output = _at(attributes, "llm.output_messages") or output
    yield Span(
        row=row.number,
        trace=trace,
        id=_text(values, "context.span_id", "span_id", "spanId", "id"),
        parent=_text(values, "parent_id", "parentSpanId", "parent_span_id"),
        kind=kind,
        name=_kind_of(attributes, values) or _text(values, "name"),
        input=_at(attributes, "input.value"),
        output=output,
        documents=_at(attributes, documents) if documents else None,
        error=_text(values, "status_message") if _text(values, "status_code").upper().endswith("ERROR") else "",
        started=_text(values, "start_time", "startTimeUnixNano"),
        fields={**attributes, "attributes": attributes, "metadata": opened(_at(attributes, "metadata"))},
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
    for name, one in list(found.items()):
        if (listed := _LISTED.fullmatch(name)) and int(listed[2]) < _MOST_LISTED:
            lists.setdefault(listed[1], {}).setdefault(int(listed[2]), {})[listed[3]] = one
            del found[name]
    return found | {name: [items[at] for at in sorted(items)] for name, items in lists.items()}


def _otlp(value: Any) -> Any:
    """A value of OTLP's JSON, {"stringValue": …} and its like."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    name, inner = next(iter(value.items()))
    if name == "arrayValue" and isinstance(inner, Mapping):
        return [_otlp(one) for one in inner.get("values") or []]
    return inner


def _at(attributes: Mapping[str, Any], name: str) -> Any:
    """By the dotted name, or where the export nests by its parts."""
    if name in attributes:
        return attributes[name]
    here: Any = attributes
    for part in name.split("."):
        here = opened(here.get(part)) if isinstance(here, Mapping) else None
    return here


def _kind_of(attributes: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    named = _at(attributes, "openinference.span.kind") or values.get("span_kind")
    return named.upper() if isinstance(named, str) else ""


def _trace_of(values: Mapping[str, Any]) -> str:
    return _text(values, "context.trace_id", "trace_id", "traceId")


def _text(values: Mapping[str, Any], *names: str) -> str:
    for name in names:
        found = _at(values, name)
        if isinstance(found, str | int) and not isinstance(found, bool) and str(found).strip():
            return str(found).strip()
    return ""
