"""Reads a log: what shape a file has, what each field was read from, its records, and the rows that are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType

from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.text.display import counted
from crag_core.experiments.labelled.file_rows import Problem, Row
from crag_core.experiments.logs.fields import mapped
from crag_core.experiments.logs.names import COLUMNS, FIELDS, MEANINGS
from crag_core.experiments.logs.record import LogRecord
from crag_core.experiments.logs.rows import rows_of
from crag_core.experiments.logs.shapes import langfuse, langsmith, openinference, table
from crag_core.experiments.logs.shapes.spans import Joined, joined

_Read = Callable[[Sequence[Row], Mapping[str, str]], Joined]
_SAMPLED = 200


@dataclass(frozen=True)
class Shape:
    """`fits` looks at the first rows of a file, `read` makes records of all. `read_from` tells by field what is read;
    empty for a table, of which some columns may have a meaning of their own in `fields`."""

    title: str
    fits: Callable[[Sequence[Row]], bool]
    read: _Read
    read_from: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)


def _traces(title: str, module: ModuleType) -> Shape:
    """Of a module that makes spans of a row."""
    return Shape(title, module.fits, lambda rows, chosen: joined(rows, module.spans_of, chosen), COLUMNS["traces"])


def _table(title: str, fits: Callable[[Sequence[str]], bool], read: _Read, shape: str = "") -> Shape:
    """`fits` looks at the columns."""
    return Shape(title, lambda rows: fits(table.columns_of(rows)), read, fields=COLUMNS.get(shape, {}))


SHAPES = {
    "openinference": _traces("OpenInference spans (Phoenix)", openinference),
    "langsmith": _traces("LangSmith runs", langsmith),
    "langfuse": _traces("Langfuse traces", langfuse),
    "phoenix-documents": _table("Phoenix: retrieved documents", table.is_phoenix, table.read, "phoenix"),
    "ragas": _table("ragas dataset", table.is_ragas, table.read_ragas, "ragas"),
    "table": _table("Table: a record a row", lambda columns: True, table.read),
}
"""By name, in the order in which they are tried."""


@dataclass(frozen=True)
class ReadLog:
    """`mapping` tells by field what it was read from; `columns` are those that a table has to choose from.

    `problems` are in the order of their rows; every other row is a record, or a part of one. `failure` says why there
    is no record at all, "" where there are some.
    """

    shape: str
    mapping: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    records: tuple[LogRecord, ...]
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...]
    failure: str = ""


def read_log(content: bytes, shape: str = "", chosen: Mapping[str, str] | None = None) -> ReadLog:
    """`shape` "": what the content looks like. `chosen` names by field the column, or the path with dots, to read.

    Never raises for the content: `failure` tells. Raises `UnknownName` for a shape or a field that there is not.
    """
    chosen = dict(chosen or {})
    if shape and shape not in SHAPES:
        raise UnknownName.among("shape", shape, tuple(SHAPES))
    if unknown := next((field for field in chosen if field not in FIELDS), ""):
        raise UnknownName.among("field", unknown, tuple(FIELDS))
    try:
        rows, problems, remarks = rows_of(content)
    except BadRecord as error:
        return ReadLog(shape, (), (), (), (), (), str(error))
    if not rows:
        first = problems[0].message if problems else "This file has no rows."
        return ReadLog(shape, (), (), (), tuple(problems), remarks, f"No row can be read. {first}")
    name = shape or next(name for name, one in SHAPES.items() if one.fits(rows[:_SAMPLED]))
    columns, read_from = table.columns_of(rows), SHAPES[name].read_from
    chosen = {field: one for field, one in SHAPES[name].fields.items() if one in ("", *columns)} | chosen
    sources = read_from or mapped(columns, chosen)
    told = {**sources, **{field: path for field, path in chosen.items() if path}}
    mapping = tuple((field, told[field]) for field in MEANINGS if field in told)
    try:
        found = SHAPES[name].read(rows, chosen)
    except BadRecord as error:
        return ReadLog(name, mapping, columns, (), tuple(problems), remarks, str(error))
    everything = tuple(sorted((*problems, *found.problems), key=lambda one: one.row))
    failure = "" if found.records else f"No record can be read. Row {everything[0].row}: {everything[0].message}"
    records = _with_own_ids(found.records)
    return ReadLog(name, mapping, columns, records, everything, (*remarks, *found.remarks), failure)


def _with_own_ids(records: Sequence[LogRecord]) -> tuple[LogRecord, ...]:
    """Each under an id of its own: two of one id, as two records of one question may be, get their rows behind it."""
    found: dict[str, LogRecord] = {}
    for one in records:
        id_ = one.id if one.id not in found else f"{one.id} (row {one.row})"
        while id_ in found:
            id_ += "'"
        found[id_] = replace(one, id=id_)
    return tuple(found.values())


def described(read: ReadLog) -> str:
    """ "498 records, 2,490 chunks, 2 rows refused"."""
    chunks = sum(len(one.contexts) for one in read.records)
    refused = f", {counted(len(read.problems), 'row')} refused" if read.problems else ""
    return f"{counted(len(read.records), 'record')}, {counted(chunks, 'chunk')}{refused}"
