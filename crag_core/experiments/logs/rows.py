"""The rows of a log's file as objects, each with its number, whatever the file is: JSONL, JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Problem, Row, decoded, first_rows, row_of, table_of

LARGEST_MB = 100
MOST_ROWS = 100_000
_PARQUET = b"PAR1"
_AROUND = ("data", "runs", "spans", "traces", "observations", "samples", "rows", "records", "examples", "items")
"""Names of the list in an object that is nothing but the frame of one, as an answer of an API is."""


Rows = tuple[list[Row], list[Problem], tuple[str, ...]]
"""Rows, those that cannot be read, and remarks on what was guessed."""


def rows_of(content: bytes) -> Rows:
    """At most `MOST_ROWS` rows; raises `BadRecord` where none can be read at all."""
    if len(content) > LARGEST_MB * 2**20:
        raise BadRecord(
            f"Expected at most {LARGEST_MB} MB, found {len(content) / 2**20:.0f} MB.", hint="Split the file."
        )
    if content.startswith(_PARQUET):
        hint = 'Save it as JSONL: frame.to_json("log.jsonl", orient="records", lines=True).'
        raise BadRecord("This is a Parquet file.", hint=hint)
    text, remarks = decoded(content)
    return *first_rows(_rows(text), MOST_ROWS), remarks


def _rows(text: str) -> Iterator[Row | Problem]:
    """A row that is the frame of others is taken apart: those of the first one are counted by their places."""
    table = table_of(text)
    for row in table.rows:
        inner = _inside(row.values) if table.names is None and isinstance(row, Row) else None
        if not inner or isinstance(row, Problem):
            yield row
            continue
        for place, one in enumerate(inner, start=1):
            yield row_of(place if row.number == 1 else row.number, one)


def _inside(whole: Mapping[str, Any]) -> Sequence[Any] | None:
    """The rows of an object that is nothing but their frame; None for another one.

    A frame is a page of an API, a session, spans of OpenTelemetry, or a table by columns: lists of one length.
    """
    if spans := _spans_in(whole):
        return spans
    values = list(whole.values())
    if len(values) > 1 and all(isinstance(one, list) and len(one) == len(values[0]) > 0 for one in values):
        return [dict(zip(whole, cells, strict=True)) for cells in zip(*values, strict=True)]
    if isinstance(whole.get("trace"), dict) or {"question", "query", "input", "inputs"} & whole.keys():
        return None
    names = ("traces",) if "id" in whole else _AROUND  # a trace is no frame of its observations
    return next((whole[name] for name in names if isinstance(whole.get(name), list)), None)


def _spans_in(whole: Mapping[str, Any]) -> list[Any]:
    """As OpenTelemetry writes them, in one object for all or one a line."""
    found: list[Any] = [whole]
    for name in ("resourceSpans", "scopeSpans", "spans"):
        held = [one.get(name) for one in found if isinstance(one, Mapping)]
        found = [one for inner in held if isinstance(inner, list) for one in inner]
    return found
