"""The rows of a log's file as objects, each with its number, whatever the file is: JSONL, JSON, CSV, or Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Problem, Row, decoded, first_rows, row_of, table_of

LARGEST_MB = 100
MOST_ROWS = 100_000
_PARQUET = b"PAR1"
_AROUND = ("data", "runs", "spans", "traces", "observations", "samples", "rows", "records", "examples", "items")
"""Names of the list in an object that is nothing but the frame of one, as an answer of an API is."""


@dataclass(frozen=True)
class LogRow:
    """`number` as a person counts it: the line of the file, or the place in a list, from 1."""

    number: int
    values: Mapping[str, Any]


Rows = tuple[tuple[LogRow, ...], tuple[Problem, ...], tuple[str, ...]]
"""Rows, those that cannot be read, and remarks on what was guessed."""


def rows_of(content: bytes, *, parquet: bool = False) -> Rows:
    """At most `MOST_ROWS` rows. `parquet`: such files are read too.

    Raises `BadRecord` where no row can be read at all.
    """
    if len(content) > LARGEST_MB * 2**20:
        raise BadRecord(
            f"Expected at most {LARGEST_MB} MB, found {len(content) / 2**20:.0f} MB.", hint="Split the file."
        )
    if content.startswith(_PARQUET):
        return _parquet_rows(content, parquet), (), ()
    text, remarks = decoded(content)
    rows, problems = first_rows(_rows(text), MOST_ROWS)
    return tuple(LogRow(row.number, _named(row)) for row in rows), tuple(problems), remarks


def _rows(text: str) -> Iterator[Row | Problem]:
    """A row that is the frame of others is taken apart: those of the first one are counted by their places."""
    table = table_of(text)
    for row in table.rows:
        inner = _inside(_named(row)) if table.names is None and isinstance(row, Row) else None
        if not inner or isinstance(row, Problem):
            yield row
            continue
        for place, one in enumerate(inner, start=1):
            yield row_of(place if row.number == 1 else row.number, one)


def _named(row: Row) -> dict[str, Any]:
    return dict(zip(row.names, row.values, strict=False))


def _inside(whole: Mapping[str, Any]) -> Sequence[Any] | None:
    """The rows of an object that is nothing but their frame; None for another one.

    A frame is a page of an API, a session, spans of OpenTelemetry, or a table as pandas and datasets write it: by rows,
    or by columns, which are lists of one length, or objects with the same keys.
    """
    if spans := _spans_in(whole):
        return spans
    if isinstance(whole.get("columns"), list) and isinstance(whole.get("data"), list):  # pandas, orient="split"
        return [dict(zip(map(str, whole["columns"]), row, strict=False)) for row in whole["data"]]
    values = list(whole.values())
    if all(isinstance(one, dict) and one.keys() == values[0].keys() and all(map(str.isdecimal, one)) for one in values):
        values = [list(one.values()) for one in values]
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


def _parquet_rows(content: bytes, is_read: bool) -> tuple[LogRow, ...]:
    if not is_read:
        raise BadRecord(
            "This is a Parquet file.",
            hint="Read it with the command import-log, or save it as JSONL: "
            'frame.to_json("log.jsonl", orient="records", lines=True).',
        )
    from pyarrow import ArrowException, parquet  # heavy

    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        if file.metadata.num_rows > MOST_ROWS:
            raise BadRecord(f"Expected at most {MOST_ROWS:,} rows, found {file.metadata.num_rows:,}.", hint="Split it.")
        table = file.read()
    except (ArrowException, OSError, ValueError) as error:
        raise BadRecord(f"This Parquet file cannot be read ({str(error)[:200]}).") from error
    return tuple(LogRow(number, row) for number, row in enumerate(table.to_pylist(), start=1))
