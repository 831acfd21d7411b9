"""A record a row: JSONL, JSON or CSV with a question, the chunks that were retrieved, and what there is.

Three tables have columns of their own: datasets of ragas, the data frames that Phoenix makes for evaluation, in which
the chunks stand under `reference`, and results of Haystack, whose `answers` are not the right ones (docs/logs.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from crag_core.base.errors import BadRecord
from crag_core.base.text.display import counted
from crag_core.experiments.labelled.file_rows import Problem, Row
from crag_core.experiments.logs.fields import NEEDED, Found, record_from, value_at
from crag_core.experiments.logs.names import MEANINGS
from crag_core.experiments.logs.values import number_of, opened

_SAMPLED, _MOST_INNER = 200, 30
_RANKS = ("rank", "position", "document_position")
_OF_A_CHUNK = ("contexts", "scores", "ids", "sources")


def fits_ragas(rows: Sequence[Row]) -> bool:
    columns = columns_of(rows)
    return "user_input" in columns and bool({"retrieved_contexts", "response", "reference"} & {*columns})


def fits_phoenix(rows: Sequence[Row]) -> bool:
    return {"context.span_id", "input", "reference"} <= {*columns_of(rows)}


def fits_haystack(rows: Sequence[Row]) -> bool:
    """Whether `answers` are those that the pipeline wrote: elsewhere they are the right ones."""
    answers = (opened(row.values.get("answers")) for row in rows)
    return any("data" in one for many in answers if isinstance(many, list) for one in many if isinstance(one, Mapping))


def columns_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Of the first rows, in their order; then the paths into those that hold objects."""
    sample = rows[:_SAMPLED]
    own = dict.fromkeys(name for row in sample for name in row.values)
    inner = dict.fromkeys(path for row in sample for name, value in row.values.items() for path in _paths(name, value))
    return (*own, *inner)


def _paths(name: str, value: Any) -> list[str]:
    held = opened(value) if isinstance(value, Mapping) or (isinstance(value, str) and value[:1] == "{") else None
    return [f"{name}.{key}" for key in held] if isinstance(held, Mapping) and len(held) <= _MOST_INNER else []


class _Row(NamedTuple):
    """Its values by field, and the rank of its chunk, where it tells one."""

    number: int
    rank: float
    values: Mapping[str, Any]

    @property
    def is_text(self) -> bool:
        return isinstance(opened(self.values.get("contexts")), str)


def read(rows: Sequence[Row], columns: Sequence[str], sources: Mapping[str, str], is_ragas: bool) -> Found:
    """`sources`: by field, what it is read from. Raises `BadRecord` where that is nothing for question or chunks."""
    if missing := [field for field in NEEDED if field not in sources]:
        raise _missing(missing, columns, is_ragas)
    there, records, problems, unread, long = list[_Row](), [], list[Problem](), 0, 0
    for row in rows:
        if is_ragas and isinstance(opened(row.values.get("user_input")), list):
            problems.append(Problem(row.number, "Expected one question, found a conversation of several turns."))
            continue
        ranks = (number_of(row.values.get(name)) for name in _RANKS)
        rank = next((rank for rank in ranks if rank is not None), 0.0)
        there.append(_Row(row.number, rank, {field: value_at(row.values, path) for field, path in sources.items()}))
    questions, several = _put_together(there)
    for one in questions:
        try:
            record = record_from(one.number, one.values)
        except BadRecord as error:
            problems.append(Problem(one.number, str(error)))
            continue
        unread += one.values.get("label") not in (None, "") and record.expected is None
        long += one.is_text and "\n\n" in record.contexts[0].text
        records.append(record)
    remarks = {
        f"{counted(unread, 'label')} could not be read: left out.": unread,
        f"{counted(several, 'question')} had a row for each chunk: put together.": several,
        f"{counted(long, 'record')} with one text of several paragraphs: it is taken as one chunk.": long,
    }
    return Found(records, problems, tuple(told for told, count in remarks.items() if count))


def _missing(fields: Sequence[str], columns: Sequence[str], is_ragas: bool) -> BadRecord:
    if is_ragas and fields == ["contexts"]:
        return BadRecord(
            "Expected a column 'retrieved_contexts', found none.",
            hint="A test set has no retrieved chunks yet: let your system answer it, and bring that.",
        )
    there = ", ".join(f"'{name[:40]}'" for name in columns[:12]) or "none"
    wanted = " and ".join(f"a column with the {MEANINGS[field]}" for field in fields)
    asked = " ".join(f"--map {field}=COLUMN" for field in fields)
    hint = f"Choose other columns below; on the command line: {asked}."
    return BadRecord(f"Expected {wanted}, found the columns {there}.", hint=hint)


def _put_together(rows: Sequence[_Row]) -> tuple[list[_Row], int]:
    """Rows that differ in nothing but their chunk are those of one question; and how many questions had several."""
    groups: dict[str, list[_Row]] = {}
    for place, one in enumerate(rows):
        own = str({field: value for field, value in one.values.items() if field not in _OF_A_CHUNK})
        groups.setdefault(own if one.is_text else str(place), []).append(one)
    found, several = list[_Row](), 0
    for group in groups.values():
        if len(group) == 1 or len({str(one.values.get("contexts")) for one in group}) < len(group):
            found += group  # the same question again
            continue
        several += 1
        ranked = sorted(group, key=lambda one: one.rank)
        lists = {field: [one.values.get(field) for one in ranked] for field in _OF_A_CHUNK if field in group[0].values}
        found.append(group[0]._replace(values={**group[0].values, **lists}))
    return sorted(found, key=lambda one: one.number), several
