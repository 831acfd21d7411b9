"""Traces of other tools as records, one a trace. Each tool packs its steps its own way; unpacked, they are read alike.

What each tool writes is said in docs/logs.md, with the addresses of its own description.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Problem, Row
from crag_core.experiments.logs.fields import Found, record_from, value_at
from crag_core.experiments.logs.names import FIELDS, STEP, TRACE
from crag_core.experiments.logs.record import Context, LogRecord
from crag_core.experiments.logs.values import MOST_CHUNKS, chunks_of, opened, text_of

Step = Mapping[str, Any]
"""What a tool says of one step of a trace, by the tool's own names."""


class Kind(StrEnum):
    RETRIEVER = "retriever"
    RERANKER = "reranker"
    MODEL = "model"
    OTHER = "other"


_MODELS = ("LLM", "GENERATION")
_UNTOLD = ("SPAN", "TOOL", "EVENT", "")
"""Kinds of a step that may be anything; its name tells."""
_SEARCHES = ("retriev", "search", "vector", "lookup")


@dataclass(frozen=True)
class Span:
    """One step of a trace, at its row of the file; without a "parent" it holds the others."""

    row: int
    step: Step

    def text(self, meaning: str) -> str:
        return text_at(self.step, *STEP[meaning])

    def value(self, meaning: str) -> Any:
        return next((found for path in STEP[meaning] if (found := value_at(self.step, path)) is not None), None)

    @property
    def error(self) -> str:
        is_failed = self.text("status").upper().endswith("ERROR")
        return text_at(self.step, "error", *(STEP["status_message"] if is_failed else ()))

    @cached_property
    def kind(self) -> Kind:
        said, name = self.text("kind").upper(), self.text("name").lower()
        is_reranker = said == "RERANKER" or ("rerank" in name and bool(self.text("parent")))
        if is_reranker and self._holds_chunks:
            return Kind.RERANKER
        is_search = said in _UNTOLD and not is_reranker and any(part in name for part in _SEARCHES)
        if said == "RETRIEVER" or (is_search and self._holds_chunks):
            return Kind.RETRIEVER
        return Kind.MODEL if said in _MODELS else Kind.OTHER

    @property
    def _holds_chunks(self) -> bool:
        documents = opened(self.value("documents"))
        try:
            return not isinstance(documents, str) and chunks_of(documents) is not None
        except BadRecord:
            return False


# --- the spans of one trace -------------------------------------------------------------------------------------------


def read(rows: Sequence[Row], unpacked: Callable[[Row], Iterator[Step]], chosen: Mapping[str, str]) -> Found:
    """A record a trace, at the row of its first span; `chosen` names paths in the span that holds the others."""
    traces: dict[str, list[Span]] = {}
    problems: list[Problem] = []
    for row in rows:
        try:
            for span in (Span(row.number, step) for step in unpacked(row)):
                if not (trace := span.text("trace")):
                    raise BadRecord("Expected a step with a trace_id or traceId, found none.")
                traces.setdefault(trace, []).append(span)
        except BadRecord as error:
            problems.append(Problem(row.number, str(error)))
    records, several, reranked = [], 0, 0
    for spans in traces.values():
        try:
            records.append(_record_of(spans, chosen))
        except BadRecord as error:
            problems.append(Problem(min(span.row for span in spans), str(error)))
            continue
        several += len(_of(Kind.RETRIEVER, spans)) > 1
        reranked += bool(_of(Kind.RERANKER, spans))
    remarks = {
        "traces search more than once: their chunks stand one after the other, each once": several,
        "traces rerank: what the reranker gave is read": reranked,
    }
    return Found(records, problems, tuple(f"{count:,} {told}." for told, count in remarks.items() if count))


def _of(kind: Kind, spans: Sequence[Span]) -> list[Span]:
    return [span for span in spans if span.kind is kind]


def _record_of(spans: Sequence[Span], chosen: Mapping[str, str]) -> LogRecord:
    ids = {span.text("id") for span in spans}
    roots = [span for span in spans if span.text("parent") not in ids] or [spans[0]]
    root = next((span for span in roots if span.kind is Kind.OTHER), roots[0])
    searches, rerankers = _of(Kind.RETRIEVER, spans), _of(Kind.RERANKER, spans)
    values: dict[str, Any] = {field: value_at(root.step, path) for field, path in chosen.items() if path}
    if "contexts" not in values:
        retrieved = _documents(rerankers[-1:] or searches) if rerankers or searches else _given(root)
        if retrieved is None:
            names = ", ".join(dict.fromkeys(span.text("name") or span.text("kind") for span in spans))
            raise BadRecord(
                f"Expected a step that retrieves, or an output with chunks, found {names[:120]}.",
                hint="Export the trace with all its steps.",
            )
        values["contexts"] = retrieved
    models = sorted(_of(Kind.MODEL, spans), key=lambda span: span.text("started"))
    # A root that retrieves itself gives chunks, and no answer.
    answers = [root, *models[-1:]] if root.kind not in (Kind.RETRIEVER, Kind.RERANKER) else models[-1:]
    asked = (text_of(span.value("input"), "question") for span in (root, *searches))
    answered = (text_of(span.value("output"), "answer") for span in answers)
    found = {
        "question": next(filter(None, asked), ""),
        "answer": next(filter(None, answered), ""),
        "ground_truth": _truth(root.step),
        "id": root.text("trace"),
    }
    record = record_from(min(span.row for span in spans), found | values)
    if not record.answer and root.error:
        raise BadRecord(f"This trace ended with an error: {root.error[:200]}", hint="Leave it out.")
    return record


def _given(root: Span) -> Any:
    """The list of chunks that the root has in its output or input, or somebody noted beside it; None without one."""
    for place in (root.value("output"), root.value("input"), root.step.get("metadata")):
        held = opened(place)
        for name in FIELDS["contexts"] if isinstance(held, Mapping) else ():
            if isinstance(found := opened(held.get(name)), list):
                return found
    return None


def _documents(searches: Sequence[Span]) -> list[dict[str, Any]]:
    """Of all searches, in their order, each chunk once."""
    found: dict[tuple[str, str], Context] = {}
    for span in sorted(searches, key=lambda span: span.text("started")):
        chunks = chunks_of([] if (given := span.value("documents")) is None else given)
        if chunks is None:
            raise BadRecord("Expected a list of chunks in the step that retrieves, found another value.")
        for one in chunks:
            found.setdefault((one.id, one.text), one)
    if len(found) > MOST_CHUNKS:
        raise BadRecord(f"Expected at most {MOST_CHUNKS} chunks, found {len(found):,}.")
    return [asdict(one) for one in found.values()]


def _truth(whole: Step) -> Any:
    """What somebody noted beside a trace as the right answer."""
    for holder in TRACE["holders"]:
        for name in TRACE["truths"]:
            if (found := value_at(whole, f"{holder}.{name}" if holder else name)) not in (None, "", [], {}):
                return text_of(found, "answer") if isinstance(found, dict) else found
    return None


def text_at(step: Step, *paths: str) -> str:
    """The text or number at the first of these paths that has one, as text; "" for none."""
    for path in paths:
        found = value_at(step, path)
        if isinstance(found, str | int | float) and not isinstance(found, bool) and str(found).strip():
            return str(found).strip()
    return ""


# --- OpenInference ----------------------------------------------------------------------------------------------------

_LISTED = re.compile(r"(retrieval\.documents|reranker\.output_documents|llm\.(?:in|out)put_messages)\.(\d+)\.(.+)")
_MOST_LISTED = 1000


def fits_openinference(rows: Sequence[Row]) -> bool:
    kinds = (
        text_at(step, "openinference.span.kind", "span_kind").upper()
        for row in rows
        for step in unpack_openinference(row)
    )
    return any(text_at(row.values, *STEP["trace"]) for row in rows) and not {"RETRIEVER", "RERANKER", "LLM"}.isdisjoint(
        kinds
    )


def unpack_openinference(row: Row) -> Iterator[Step]:
    """Attributes by their dotted names, wherever the export has them; lists that were laid out flat as lists."""
    held = opened(row.values.get("attributes"))
    found: dict[str, Any] = {}
    if isinstance(held, list):
        found = {str(one.get("key")): _otlp(one.get("value")) for one in held if isinstance(one, Mapping)}
    elif isinstance(held, Mapping):
        found = dict(held)
    flat = "attributes."
    found |= {name.removeprefix(flat): one for name, one in row.values.items() if name.startswith(flat)}
    lists: dict[str, dict[int, dict[str, Any]]] = {}
    for name in list(found):
        if (listed := _LISTED.fullmatch(name)) and int(listed[2]) < _MOST_LISTED:
            lists.setdefault(listed[1], {}).setdefault(int(listed[2]), {})[listed[3]] = found.pop(name)
    found |= {name: [items[at] for at in sorted(items)] for name, items in lists.items()}
    yield {**row.values, **found, "attributes": found}


def _otlp(value: Any) -> Any:
    """A value of OTLP's JSON, {"stringValue": …} and its like."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    name, inner = next(iter(value.items()))
    if name == "arrayValue" and isinstance(inner, Mapping):
        return [_otlp(one) for one in inner.get("values") or []]
    return inner


# --- Langfuse ---------------------------------------------------------------------------------------------------------

_TYPES = {"SPAN", "GENERATION", "EVENT", "RETRIEVER", "AGENT", "TOOL", "CHAIN", "EMBEDDING", "EVALUATOR", "GUARDRAIL"}


def fits_langfuse(rows: Sequence[Row]) -> bool:
    return any(
        isinstance(opened(row.values.get("observations")), list)
        or (text_at(row.values, "type").upper() in _TYPES and text_at(row.values, *STEP["trace"]))
        for row in rows
    )


def unpack_langfuse(row: Row) -> Iterator[Step]:
    """A trace with its steps, the frame {"trace": …, "observations": […]} of a download, or one observation."""
    values, observations = row.values, opened(row.values.get("observations"))
    if isinstance(observations, list):
        inner = opened(values.get("trace"))
        whole = inner if isinstance(inner, Mapping) else values
        trace = text_at(whole, "id") or f"row {row.number}"
        root = {"trace_id": trace, "span_id": f"trace {trace}", "name": "trace", "type": "TRACE"}
        yield {**whole, **root}
        for one in observations:
            if isinstance(one, Mapping):
                yield {**one, "trace_id": trace, "parent_id": text_at(one, *STEP["parent"]) or root["span_id"]}
    elif not text_at(values, *STEP["trace"]) and values.get("id") and {"input", "output"} & values.keys():
        raise BadRecord(
            "Expected a trace with its observations, found only its input and output.",
            hint="Export the observations, or download the traces as JSON.",
        )
    else:
        yield values


# --- LangSmith --------------------------------------------------------------------------------------------------------

_RUN_TYPES = ("llm", "chain", "tool", "retriever", "embedding", "prompt", "parser")


def fits_langsmith(rows: Sequence[Row]) -> bool:
    return any(_is_run(row.values) or _is_example(row.values) for row in rows)


def _is_run(values: Step) -> bool:
    return text_at(values, "run_type").lower() in _RUN_TYPES


def _is_example(values: Step) -> bool:
    return "run_type" not in values and all(isinstance(_held(values, name), Mapping) for name in ("inputs", "outputs"))


def unpack_langsmith(row: Row) -> Iterator[Step]:
    if _is_example(row.values):
        yield _example(row)
        return
    if not _is_run(row.values):
        found = str(row.values.get("run_type"))[:60]
        raise BadRecord(f"Expected a run_type such as retriever or chain, found {found!r}.")
    runs: list[Step] = [row.values]
    while runs:
        run = runs.pop()
        id_ = text_at(run, "id")
        trace = text_at(run, "trace_id") or ("" if run.get("parent_run_id") else id_)
        yield {**run, "trace_id": trace, "inputs": _held(run, "inputs"), "outputs": _held(run, "outputs")}
        children = opened(run.get("child_runs"))
        runs += [
            {**one, "trace_id": trace, "parent_run_id": one.get("parent_run_id") or id_}
            for one in reversed(children if isinstance(children, list) else [])
            if isinstance(one, Mapping)
        ]


def _example(row: Row) -> Step:
    """Its outputs are the right ones, unless those stand beside them."""
    inputs, outputs = _held(row.values, "inputs"), _held(row.values, "outputs")
    right = _held(row.values, "reference_outputs") or _held(row.values, "reference")
    if right is None:
        right, outputs = outputs, None
    said = {"inputs": inputs, "outputs": outputs, "reference_outputs": right}
    return {"trace_id": f"row {row.number}", "name": "example", "type": "example", **said}


def _held(run: Step, name: str) -> Any:
    """`inputs` or `outputs`, which a table has in columns such as `inputs.question`."""
    if name in run:
        return opened(run[name]) or None
    found = {key.removeprefix(f"{name}."): opened(one) for key, one in run.items() if key.startswith(f"{name}.")}
    return {key: one for key, one in found.items() if one not in (None, "")} or None
