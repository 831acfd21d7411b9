"""Traces of other tools as records: the spans of one trace are joined, whatever tool wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Problem, Row
from crag_core.experiments.logs.fields import record_from, value_at
from crag_core.experiments.logs.names import FIELDS, TRACE
from crag_core.experiments.logs.record import Context, LogRecord
from crag_core.experiments.logs.values import MOST_CHUNKS, chunks_of, opened, text_of


class Kind(StrEnum):
    RETRIEVER = "retriever"
    RERANKER = "reranker"
    MODEL = "model"
    OTHER = "other"


@dataclass(frozen=True)
class Span:
    """One step of a trace. `documents` is what it gave, where it retrieved or reranked; `fields` is all that it says.

    `parent` is "" for the step that holds the others.
    """

    row: int
    trace: str
    id: str
    parent: str
    kind: Kind
    name: str = ""
    input: Any = None
    output: Any = None
    documents: Any = None
    error: str = ""
    started: str = ""
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Joined:
    """The records of a file, and the rows that are none, in their order."""

    records: tuple[LogRecord, ...]
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...] = ()


def joined(rows: Sequence[Row], spans_of: Callable[[Row], Iterable[Span]], chosen: Mapping[str, str]) -> Joined:
    """A record a trace, at the row of its first span; `chosen` names paths in the span that holds the others."""
    traces: dict[str, list[Span]] = {}
    problems: list[Problem] = []
    for row in rows:
        try:
            for span in spans_of(row):
                traces.setdefault(span.trace, []).append(span)
        except BadRecord as error:
            problems.append(Problem(row.number, str(error)))
    records, several, reranked = [], 0, 0
    for spans in traces.values():
        try:
            records.append(_record_of(spans, chosen))
        except BadRecord as error:
            problems.append(Problem(min(span.row for span in spans), str(error)))
            continue
        several += sum(span.kind is Kind.RETRIEVER for span in spans) > 1
        reranked += bool(_rerankers(spans))
    remarks = {
        "traces search more than once: their chunks stand one after the other, each once": several,
        "traces rerank: what the reranker gave is read": reranked,
    }
    return Joined(
        tuple(records),
        tuple(sorted(problems, key=lambda one: one.row)),
        tuple(f"{count:,} {told}." for told, count in remarks.items() if count),
    )


def _record_of(spans: Sequence[Span], chosen: Mapping[str, str]) -> LogRecord:
    ids = {span.id for span in spans}
    roots = [span for span in spans if span.parent not in ids] or [spans[0]]
    root = next((span for span in roots if span.kind is Kind.OTHER), roots[0])
    searches = [span for span in spans if span.kind is Kind.RETRIEVER]
    rerankers = _rerankers(spans)
    whole = root.fields or {}
    values: dict[str, Any] = {field: value_at(whole, path) for field, path in chosen.items() if path}
    if "contexts" not in values:
        retrieved = _documents(rerankers[-1:] or searches) if rerankers or searches else _given(root)
        if retrieved is None:
            kinds = ", ".join(dict.fromkeys(span.name or span.kind.value for span in spans))[:120]
            raise BadRecord(
                f"Expected a step that retrieves, or an output with chunks, found {kinds}.",
                hint="Export the trace with all its steps.",
            )
        values["contexts"] = retrieved
    models = sorted((span for span in spans if span.kind is Kind.MODEL), key=lambda span: span.started)
    # A root that retrieves itself gives chunks, and no answer.
    answers = [root, *models[-1:]] if root.kind not in (Kind.RETRIEVER, Kind.RERANKER) else models[-1:]
    asked = (text_of(span.input, "question") for span in (root, *searches))
    answered = (text_of(span.output, "answer") for span in answers)
    found = {
        "question": next(filter(None, asked), ""),
        "answer": next(filter(None, answered), ""),
        "ground_truth": _truth(whole),
        "id": root.trace,
    }
    record = record_from(min(span.row for span in spans), found | values)
    if not record.answer and root.error:
        raise BadRecord(f"This trace ended with an error: {root.error[:200]}", hint="Leave it out.")
    return record


def _rerankers(spans: Sequence[Span]) -> list[Span]:
    return [span for span in spans if span.kind is Kind.RERANKER and span.documents is not None]


def _given(root: Span) -> Any:
    """The list of chunks that the root has in its output or input, or somebody noted beside it; None without one."""
    for place in (root.output, root.input, value_at(root.fields or {}, "metadata")):
        held = opened(place)
        for name in FIELDS["contexts"] if isinstance(held, Mapping) else ():
            if isinstance(found := opened(held.get(name)), list):
                return found
    return None


def _documents(searches: Sequence[Span]) -> list[dict[str, Any]]:
    """Of all searches, in their order, each chunk once."""
    found: dict[tuple[str, str], Context] = {}
    for span in sorted(searches, key=lambda span: span.started):
        chunks = chunks_of(span.documents if span.documents is not None else [])
        if chunks is None:
            raise BadRecord("Expected a list of chunks in the step that retrieves, found another value.")
        for one in chunks:
            found.setdefault((one.id, one.text), one)
    if len(found) > MOST_CHUNKS:
        raise BadRecord(f"Expected at most {MOST_CHUNKS} chunks, found {len(found):,}.")
    return [asdict(one) for one in found.values()]


def _truth(whole: Mapping[str, Any]) -> Any:
    """What somebody noted beside a trace as the right answer."""
    for holder in TRACE["holders"]:
        for name in TRACE["truths"]:
            if (found := value_at(whole, f"{holder}.{name}" if holder else name)) not in (None, "", [], {}):
                return text_of(found, "answer") if isinstance(found, dict) else found
    return None


def text_at(values: Mapping[str, Any], *paths: str) -> str:
    """The text or number at the first of these paths that has one, as text; "" for none."""
    for path in paths:
        found = value_at(values, path)
        if isinstance(found, str | int | float) and not isinstance(found, bool) and str(found).strip():
            return str(found).strip()
    return ""
