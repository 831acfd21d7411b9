"""A record a row: JSONL, JSON, CSV or Parquet with a question, the chunks that were retrieved, and what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.text.display import counted
from crag_core.experiments.labelled.file_rows import Problem
from crag_core.experiments.logs.fields import MEANINGS, NEEDED, mapped, record_from, value_at
from crag_core.experiments.logs.rows import LogRow
from crag_core.experiments.logs.shapes.spans import Joined

_SAMPLED = 200


def columns_of(rows: Sequence[LogRow]) -> tuple[str, ...]:
    """Of the first rows, in their order."""
    return tuple(dict.fromkeys(name for row in rows[:_SAMPLED] for name in row.values))


def fits(rows: Sequence[LogRow]) -> bool:
    """What is nothing else is a table."""
    return True


def read(rows: Sequence[LogRow], chosen: Mapping[str, str]) -> Joined:
    """Raises `BadRecord` where no column holds the questions, or none the chunks."""
    columns = columns_of(rows)
    places = mapped(columns, chosen)
    missing = [field for field in NEEDED if field not in places]
    if missing:
        there = ", ".join(f"'{name[:40]}'" for name in columns[:12]) or "none"
        wanted = " and ".join(f"a column with the {MEANINGS[field]}" for field in missing)
        raise BadRecord(
            f"Expected {wanted}, found the columns {there}.",
            hint="Say which it is: " + ", ".join(f"{field} = …" for field in missing) + ".",
        )
    records, problems, unread = [], list[Problem](), 0
    for row in rows:
        values = {field: _found(row.values, paths) for field, paths in places.items()}
        try:
            record = record_from(row.number, values)
        except BadRecord as error:
            problems.append(Problem(row.number, str(error)))
            continue
        unread += values.get("label") not in (None, "") and record.expected is None
        records.append(record)
    remarks = (f"{counted(unread, 'label')} could not be read, and was left out.",) if unread else ()
    return Joined(tuple(records), tuple(problems), remarks)


def _found(values: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    """Of several columns, a list of what is in those that are not empty."""
    if len(paths) == 1:
        return value_at(values, paths[0])
    return [one for path in paths if (one := value_at(values, path)) not in (None, "")]
