"""Reads a log: what shape a file has, what each field was read from, its records, and the rows that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.text.display import counted
from crag_core.experiments.labelled.file_rows import Problem, Row
from crag_core.experiments.logs import tables, traces
from crag_core.experiments.logs.fields import mapped
from crag_core.experiments.logs.names import COLUMNS, FIELDS, MEANINGS
from crag_core.experiments.logs.record import LogRecord
from crag_core.experiments.logs.rows import rows_of

_SAMPLED = 200


@dataclass(frozen=True)
class Shape:
    """`fits` looks at the first rows of a file. `unpacked` makes the steps of traces of a row; None: it is a table."""

    title: str
    fits: Callable[[Sequence[Row]], bool]
    unpacked: Callable[[Row], Iterator[traces.Step]] | None = None


SHAPES = {
    "openinference": Shape("OpenInference spans (Phoenix)", traces.fits_openinference, traces.unpack_openinference),
    "langsmith": Shape("LangSmith runs", traces.fits_langsmith, traces.unpack_langsmith),
    "langfuse": Shape("Langfuse traces", traces.fits_langfuse, traces.unpack_langfuse),
    "phoenix-documents": Shape("Phoenix: retrieved documents", tables.fits_phoenix),
    "ragas": Shape("ragas dataset", tables.fits_ragas),
    "haystack": Shape("Haystack results", tables.fits_haystack),
    "table": Shape("Table: a record a row", lambda rows: True),
}
"""By name, in the order in which they are tried."""


@dataclass(frozen=True)
class ReadLog:
    """`mapping` tells by field what it was read from; `columns` are those that a table has to choose from.

    `problems` are in the order of their rows; every other row is a record, or a part of one. `failure` says why there
    is no record at all, "" where there are some.
    """

    shape: str
    failure: str = ""
    mapping: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    records: tuple[LogRecord, ...] = ()
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def is_table(self) -> bool:
        return not self.shape or SHAPES[self.shape].unpacked is None


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
        return ReadLog(shape, str(error))
    if not rows:
        first = (
            problems[0].message
            if problems
            else "Expected JSONL, JSON, or CSV with names of columns on line 1, found nothing below it."
        )
        return ReadLog(shape, f"No row can be read. {first}", problems=tuple(problems), remarks=remarks)
    name = shape or next(name for name, one in SHAPES.items() if one.fits(rows[:_SAMPLED]))
    columns, unpacked = tables.columns_of(rows), SHAPES[name].unpacked
    if unpacked is None:
        own = {field: one for field, one in COLUMNS.get(name, {}).items() if one in ("", *columns)}
        sources = mapped(columns, own | chosen)
    else:
        sources = COLUMNS["traces"] | {field: path for field, path in chosen.items() if path}
    read = ReadLog(name, "", tuple((field, sources[field]) for field in MEANINGS if field in sources), columns)
    try:
        if unpacked is None:
            found = tables.read(rows, columns, sources, is_ragas=name == "ragas")
        else:
            found = traces.read(rows, unpacked, chosen)
    except BadRecord as error:
        return replace(read, failure=str(error), problems=tuple(problems), remarks=remarks)
    everything = tuple(sorted((*problems, *found.problems), key=lambda one: one.row))
    failure = "" if found.records else f"No record can be read. {everything[0].told}"
    records = _with_own_ids(found.records)
    return replace(read, failure=failure, records=records, problems=everything, remarks=(*remarks, *found.remarks))


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
