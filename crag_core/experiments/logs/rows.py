"""The rows of a log's file as objects, each with its number, whatever the file is: JSONL, JSON, CSV, or Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Problem, Row, decoded, table_of

LARGEST_MB = 100
MOST_ROWS = 100_000
_SAMPLED = 50
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
    found = list(islice(_rows(text), MOST_ROWS + 1))
    problems = [one for one in found if isinstance(one, Problem)]
    if len(found) > MOST_ROWS:
        last = found.pop()
        at = last.row if isinstance(last, Problem) else last.number
        problems.append(
            Problem(at, f"Expected at most {MOST_ROWS:,} rows, found more. Nothing from this row on was read.")
        )
    return tuple(one for one in found if isinstance(one, LogRow)), tuple(problems), remarks


def _rows(text: str) -> Iterator[LogRow | Problem]:
    """A whole object is one row, or the frame of many; else one row a line, or what a table has."""
    is_json = text.lstrip("\ufeff \t\n")[:1] == "{"
    if is_json and (whole := _whole(text)) is not None:
        yield from _framed(whole)
        return
    rows = table_of(text).rows
    if is_json and _is_laid_out(text):
        rows = table_of(f"[{text}]").rows
    for row in rows:
        if isinstance(row, Problem):
            yield Problem(row.row, _about_logs(row.message))
            continue
        values = dict(zip(row.names, row.values, strict=False))
        inner = _spans_in(values) or _inside(values) if is_json else None
        yield from (LogRow(row.number, one) for one in inner or [values] if isinstance(one, dict))


def _is_laid_out(text: str) -> bool:
    """Whether objects, one after the other, go over several lines or have commas between them."""
    return not any(isinstance(row, Row) and row.names for row in islice(table_of(text).rows, _SAMPLED))


def _whole(text: str) -> dict[str, Any] | None:
    """The one object that the text is; None for several, one a line."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _framed(whole: dict[str, Any]) -> Iterator[LogRow | Problem]:
    inner = _spans_in(whole) or _inside(whole)
    if inner is not None:
        yield from _numbered(iter(inner))
        return
    if columns := _columns(whole):
        names = tuple(columns)
        yield from _numbered(dict(zip(names, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
        return
    yield LogRow(1, whole)


def _columns(whole: dict[str, Any]) -> dict[str, list[Any]]:
    """A table by columns, as pandas and datasets write it: lists of one length, or objects with the same keys."""
    values = list(whole.values())
    is_indexed = len(values) > 1 and all(isinstance(one, dict) and one for one in values)
    if is_indexed and all(one.keys() == values[0].keys() and all(map(str.isdecimal, one)) for one in values):
        return {name: list(one.values()) for name, one in whole.items()}
    if len(values) > 1 and all(isinstance(one, list) and len(one) == len(values[0]) > 0 for one in values):
        return dict(whole)
    return {}


def _numbered(found: Iterator[Any]) -> Iterator[LogRow | Problem]:
    for number, one in enumerate(found, start=1):
        if isinstance(one, dict):
            yield LogRow(number, one)
        else:
            yield Problem(number, "Expected an object, found another value.")


def _inside(whole: Mapping[str, Any]) -> list[Any] | None:
    """The rows of an object that is nothing but their frame: a page of an API, or a session; None for another one."""
    if isinstance(whole.get("trace"), dict) or {"question", "query", "input", "inputs"} & whole.keys():
        return None
    if isinstance(whole.get("columns"), list) and isinstance(whole.get("data"), list):  # pandas, orient="split"
        return [dict(zip(map(str, whole["columns"]), row, strict=False)) for row in whole["data"]]
    names = ("traces",) if "id" in whole else _AROUND  # a trace is no frame of its observations
    return next((whole[name] for name in names if isinstance(whole.get(name), list)), None)


def _spans_in(whole: Mapping[str, Any]) -> list[Any]:
    """As OpenTelemetry writes them, in one object for all or one a line."""
    scopes = (scope for one in _list_in(whole, "resourceSpans") for scope in _list_in(one, "scopeSpans"))
    return [span for scope in scopes for span in _list_in(scope, "spans")]


def _list_in(value: Any, name: str) -> list[Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _about_logs(message: str) -> str:
    """The reader of tables names what a labelled set has."""
    message = message.replace(' such as {"question": "…", "expected": "CORRECT"}', "")
    return message.replace("an object with a question and its label", "an object a line")


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
