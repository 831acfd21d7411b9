"""A record a row: JSONL, JSON or CSV with a question, the chunks that were retrieved, and what there is.

Two tables have columns of their own: datasets of ragas (https://docs.ragas.io/en/v0.2.3/concepts/components/eval_sample/),
and the data frames that Phoenix makes for evaluation, get_retrieved_documents and get_qa_with_reference, in which the
chunks stand under `reference` (https://arize.com/docs/phoenix/how-to/extract-data-from-spans).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.text.display import counted
from crag_core.experiments.labelled.file_rows import Problem, Row
from crag_core.experiments.logs.fields import NEEDED, mapped, record_from, value_at
from crag_core.experiments.logs.names import MEANINGS
from crag_core.experiments.logs.shapes.spans import Joined
from crag_core.experiments.logs.values import number_of, opened

_SAMPLED, _MOST_INNER = 200, 30
_RANKS = ("rank", "position", "document_position")
_OF_A_CHUNK = ("contexts", "scores", "ids", "sources")


def is_ragas(columns: Sequence[str]) -> bool:
    return "user_input" in columns and bool({"retrieved_contexts", "response", "reference"} & set(columns))


def is_phoenix(columns: Sequence[str]) -> bool:
    return {"context.span_id", "input", "reference"} <= set(columns)


def columns_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Of the first rows, in their order; then the paths into those that hold objects."""
    sample = rows[:_SAMPLED]
    own = dict.fromkeys(name for row in sample for name in row.values)
    inner = dict.fromkeys(path for row in sample for name, value in row.values.items() for path in _paths(name, value))
    return (*own, *inner)


def _paths(name: str, value: Any) -> list[str]:
    held = opened(value) if isinstance(value, Mapping) or (isinstance(value, str) and value[:1] == "{") else None
    return [f"{name}.{key}" for key in held] if isinstance(held, Mapping) and len(held) <= _MOST_INNER else []


def read_ragas(rows: Sequence[Row], chosen: Mapping[str, str]) -> Joined:
    """Single turns; in CSV the lists are written in Python's notation."""
    if "contexts" not in chosen:
        raise BadRecord(
            "Expected a column 'retrieved_contexts', found none.",
            hint="A test set has no retrieved chunks yet: let your system answer it, and bring that.",
        )
    turns = [row for row in rows if isinstance(opened(row.values.get("user_input")), list)]
    found = read([row for row in rows if row not in turns], chosen)
    several = (Problem(row.number, "Expected one question, found a conversation of several turns.") for row in turns)
    return Joined(found.records, (*found.problems, *several), found.remarks)


def read(rows: Sequence[Row], chosen: Mapping[str, str]) -> Joined:
    """Raises `BadRecord` where no column holds the questions, or none the chunks."""
    columns = columns_of(rows)
    places = mapped(columns, chosen)
    if missing := [field for field in NEEDED if field not in places]:
        there = ", ".join(f"'{name[:40]}'" for name in columns[:12]) or "none"
        wanted = " and ".join(f"a column with the {MEANINGS[field]}" for field in missing)
        raise BadRecord(
            f"Expected {wanted}, found the columns {there}.",
            hint="Say which it is: " + ", ".join(f"{field} = …" for field in missing) + ".",
        )
    found, several = _joined_rows([_Row(row, _values(row, places, chosen)) for row in rows])
    records, problems, unread, long = [], list[Problem](), 0, 0
    for one in found:
        try:
            record = record_from(one.row.number, one.values)
        except BadRecord as error:
            problems.append(Problem(one.row.number, str(error)))
            continue
        unread += one.values.get("label") not in (None, "") and record.expected is None
        long += one.is_text and "\n\n" in record.contexts[0].text
        records.append(record)
    remarks = {
        f"{counted(unread, 'label')} could not be read: left out.": unread,
        f"{counted(several, 'question')} had a row for each chunk: put together.": several,
        f"{counted(long, 'record')} with one text of several paragraphs: it is taken as one chunk.": long,
    }
    return Joined(tuple(records), tuple(problems), tuple(told for told, count in remarks.items() if count))


@dataclass(frozen=True)
class _Row:
    """A row with its values by field."""

    row: Row
    values: Mapping[str, Any]

    @property
    def is_text(self) -> bool:
        """Whether its chunks are one plain text."""
        return isinstance(opened(self.values.get("contexts")), str)

    @property
    def rank(self) -> float:
        """Of its chunk, where the row tells it."""
        return next((rank for name in _RANKS if (rank := number_of(self.row.values.get(name))) is not None), 0.0)


def _values(row: Row, places: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, Any]:
    """By field; a row that has none of the columns is read by its own."""
    if not any(value_at(row.values, places[field]) for field in NEEDED):
        places = mapped(columns_of([row]), chosen)
    return {field: value_at(row.values, path) for field, path in places.items()}


def _joined_rows(rows: Sequence[_Row]) -> tuple[list[_Row], int]:
    """Rows that differ in nothing but their chunk are those of one question; and how many questions had several."""
    groups: dict[str, list[_Row]] = {}
    for place, one in enumerate(rows):
        own = str({field: value for field, value in one.values.items() if field not in _OF_A_CHUNK})
        groups.setdefault(own if one.is_text else str(place), []).append(one)
    found, several = list[_Row](), 0
    for group in groups.values():
        if len({str(one.values.get("contexts")) for one in group}) < len(group) or len(group) == 1:
            found += group  # the same question again
            continue
        several += 1
        ranked = sorted(group, key=lambda one: one.rank)
        lists = {field: [one.values.get(field) for one in ranked] for field in _OF_A_CHUNK if field in group[0].values}
        found.append(_Row(group[0].row, {**group[0].values, **lists}))
    return sorted(found, key=lambda one: one.row.number), several
