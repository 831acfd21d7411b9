"""Datasets of ragas, single turns: https://docs.ragas.io/en/stable/references/evaluation_schema/

Columns `user_input`, `retrieved_contexts`, `response`, `reference`, `reference_contexts`; in CSV the lists are written
in Python's notation. Of earlier versions: `question`, `contexts`, `answer`, `ground_truth`, which any table may have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Problem
from crag_core.experiments.logs.rows import LogRow
from crag_core.experiments.logs.shapes import table
from crag_core.experiments.logs.shapes.spans import Joined
from crag_core.experiments.logs.values import opened

FIELDS = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "ids": "retrieved_context_ids",
    "answer": "response",
    "ground_truth": "reference",
    "reference_contexts": "reference_contexts",
    "reference_ids": "reference_context_ids",
}


def fits(rows: Sequence[LogRow]) -> bool:
    columns = table.columns_of(rows)
    return "user_input" in columns and bool({"retrieved_contexts", "response", "reference"} & set(columns))


def read(rows: Sequence[LogRow], chosen: Mapping[str, str]) -> Joined:
    columns = table.columns_of(rows)
    own = {field: name for field, name in FIELDS.items() if name in columns} | dict(chosen)
    if "contexts" not in own:
        raise BadRecord(
            "Expected a column 'retrieved_contexts', found none.",
            hint="A test set has no retrieved chunks yet: let your system answer it, and bring that.",
        )
    turns = [row for row in rows if isinstance(opened(row.values.get("user_input")), list)]
    found = table.read([row for row in rows if row not in turns], own)
    several = (Problem(row.number, "Expected one question, found a conversation of several turns.") for row in turns)
    problems = sorted((*found.problems, *several), key=lambda one: one.row)
    return Joined(found.records, tuple(problems), found.remarks)
