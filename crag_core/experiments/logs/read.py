"""Reads a log: what shape a file has, what each field was read from, its records, and the rows that are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.text.display import counted
from crag_core.experiments.labelled.file_rows import Problem
from crag_core.experiments.logs.fields import FIELDS, MEANINGS, mapped, with_own_ids
from crag_core.experiments.logs.record import LogRecord
from crag_core.experiments.logs.rows import LogRow, rows_of
from crag_core.experiments.logs.shapes import langfuse, langsmith, openinference, phoenix_documents, ragas, table
from crag_core.experiments.logs.shapes.spans import Joined


@dataclass(frozen=True)
class Shape:
    """`fits` looks at rows of a file, `read` makes records of them. `read_from` tells by field what is read; () for a
    table, of which some columns may have a meaning of their own in `fields`."""

    title: str
    fits: Callable[[Sequence[LogRow]], bool]
    read: Callable[[Sequence[LogRow], Mapping[str, str]], Joined]
    read_from: tuple[tuple[str, str], ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


SHAPES = {
    "openinference": Shape(
        "OpenInference spans (Phoenix)", openinference.fits, openinference.read, openinference.READ_FROM
    ),
    "langsmith": Shape("LangSmith runs", langsmith.fits, langsmith.read, langsmith.READ_FROM),
    "langfuse": Shape("Langfuse traces", langfuse.fits, langfuse.read, langfuse.READ_FROM),
    "phoenix-documents": Shape(
        "Phoenix: retrieved documents", phoenix_documents.fits, phoenix_documents.read, fields=phoenix_documents.FIELDS
    ),
    "ragas": Shape("ragas dataset", ragas.fits, ragas.read, fields=ragas.FIELDS),
    "table": Shape("Table: a record a row", table.fits, table.read),
}
"""By name, in the order in which they are tried."""

_SAMPLED = 200


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


def read_log(
    content: bytes, shape: str = "", chosen: Mapping[str, str] | None = None, *, parquet: bool = False
) -> ReadLog:
    """`shape` "": what the content looks like. `chosen` names by field the column, or the path with dots, to read.

    Never raises for the content: `failure` tells. Raises `UnknownName` for a shape or a field that there is not.
    """
    chosen = dict(chosen or {})
    if shape and shape not in SHAPES:
        raise UnknownName.among("shape", shape, tuple(SHAPES))
    if unknown := next((field for field in chosen if field not in FIELDS), ""):
        raise UnknownName.among("field", unknown, tuple(FIELDS))
    try:
        rows, problems, remarks = rows_of(content, parquet=parquet)
    except BadRecord as error:
        return ReadLog(shape, (), (), (), (), (), str(error))
    if not rows:
        first = problems[0].message if problems else "This file has no rows."
        return ReadLog(shape, (), (), (), problems, remarks, f"No row can be read. {first}")
    name = shape or detected(rows)
    columns = table.columns_of(rows)
    mapping = _mapping(name, columns, chosen)
    try:
        found = SHAPES[name].read(rows, chosen)
    except BadRecord as error:
        return ReadLog(name, mapping, columns, (), problems, remarks, str(error))
    everything = tuple(sorted((*problems, *found.problems), key=lambda one: one.row))
    failure = "" if found.records else f"No record can be read. Row {everything[0].row}: {everything[0].message}"
    return ReadLog(name, mapping, columns, with_own_ids(found.records), everything, (*remarks, *found.remarks), failure)


def detected(rows: Sequence[LogRow]) -> str:
    return next(name for name, shape in SHAPES.items() if shape.fits(rows[:_SAMPLED]))


def described(read: ReadLog) -> str:
    """ "498 records, 2,490 chunks, 2 rows refused"."""
    chunks = sum(len(one.contexts) for one in read.records)
    refused = f", {counted(len(read.problems), 'row')} refused" if read.problems else ""
    return f"{counted(len(read.records), 'record')}, {counted(chunks, 'chunk')}{refused}"


def _mapping(name: str, columns: Sequence[str], chosen: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """By field, in their order, what it is read from; fields that nothing is read for are left out."""
    if SHAPES[name].read_from:
        found = dict(SHAPES[name].read_from) | {field: path for field, path in chosen.items() if path}
    else:
        own = {field: column for field, column in SHAPES[name].fields.items() if column in ("", *columns)}
        found = {field: ", ".join(paths) for field, paths in mapped(columns, own | dict(chosen)).items()}
    return tuple((field, found[field]) for field in MEANINGS if field in found)
