"""Reads labelled questions from an uploaded file, and writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import to_plain
from crag_core.base.text.csv_cells import written
from crag_core.experiments.labelled.columns import (
    known_columns,
    listed,
    missing_columns,
    origin_named,
    question_from,
    unused_columns,
    unused_remark,
)
from crag_core.experiments.labelled.decoding import STRANGE, cleaned, decoded
from crag_core.experiments.labelled.duplicates import Contradiction, settle
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.labelled.rows import Problem as Problem
from crag_core.experiments.labelled.rows import Row, Table, table_of

MOST_ROWS = 100_000
FEW = 20
_MOST_ROWS_NAMED = 5


@dataclass(frozen=True)
class Read:
    """Each row of the file is a question, a repetition that a remark counts, or is named by a problem.

    `problems` are in the order of their rows. `remarks` tell what was guessed, left aside, or cannot be measured.
    """

    questions: tuple[LabelledQuestion, ...]
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...]


def read_questions(name: str, content: bytes) -> Read:
    """The questions of the CSV or JSONL file `name`; what it is, its content tells. Never raises.

    At most `MOST_ROWS` rows are read. Texts are `cleaned`.
    """
    try:
        text, guesses = decoded(content)
        table = table_of(text)
    except BadRecord as error:
        return Read((), (Problem(1, f"{cleaned(name)[:60]}: {error}"),), ())
    return _Reading(table).read(guesses)


def write_questions(questions: Iterable[LabelledQuestion]) -> str:
    """JSONL in ASCII; `read_questions` gives the same questions where their texts are `cleaned` and each comes once."""
    return "".join(f"{json.dumps(to_plain(question))}\n" for question in questions)


def write_csv(questions: Iterable[LabelledQuestion]) -> str:
    """As `write_questions`, for a spreadsheet, which takes it for UTF-8 only if it is encoded as `utf-8-sig`.

    Text that a spreadsheet would take for a formula is marked, and read again as the question that was asked.
    """
    header = [field.name for field in fields(LabelledQuestion)]
    plain = ({**to_plain(question), "answers": _cell_of(question.answers)} for question in questions)
    return written([header, *(list(row.values()) for row in plain)])


def _cell_of(answers: Sequence[str]) -> str:
    is_plain = not any("|" in answer or answer.startswith("[") for answer in answers)
    return "|".join(answers) if is_plain else json.dumps(answers)


class _Reading:
    """One file on its way in: collects what `Read` holds."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._problems: list[Problem] = []
        self._unused: dict[str, None] = {}
        self._cleaned: list[int] = []
        self._broken_lines: list[int] = []
        self._origins: dict[str, None] = {}

    def read(self, remarks: tuple[str, ...]) -> Read:
        rows = self._rows()
        missing = self._missing(rows)
        if missing:
            self._problems.append(Problem(self._table.header, missing))
            rows = []
        settled = settle(self._questions(rows))
        self._problems += map(_describe, settled.contradictions)
        if not settled.questions and not self._problems:
            self._problems.append(Problem(self._table.header, "This file has no questions. Write one a row."))
        repeated = _repeated(settled.repeated)
        found = (*remarks, *self._remarks(), *repeated, *limits(settled.questions))
        return Read(settled.questions, tuple(sorted(self._problems, key=lambda problem: problem.row)), found)

    def _rows(self) -> list[Row]:
        rows = []
        for found in islice(self._table.rows, MOST_ROWS):
            if isinstance(found, Row):
                rows.append(found)
            else:
                self._problems.append(found)
        more = next(self._table.rows, None)
        if more is not None:
            at = more.number if isinstance(more, Row) else more.row
            self._problems.append(
                Problem(
                    at,
                    f"Expected at most {MOST_ROWS:,} rows, found more. Nothing from this row on was read: "
                    "put the rest into a second file.",
                )
            )
        return rows

    def _missing(self, rows: Sequence[Row]) -> str:
        if self._table.names is not None:
            return missing_columns(self._table.names, f"on line {self._table.header} the columns")
        names = tuple(dict.fromkeys(name for row in rows for name in row.names))
        return missing_columns(names, "objects with the fields") if rows else ""

    def _questions(self, rows: Iterable[Row]) -> Iterable[tuple[int, LabelledQuestion]]:
        is_json = self._table.names is None
        known: dict[tuple[str, ...], dict[str, int]] = {}
        for row in rows:
            if row.names not in known:
                known[row.names] = known_columns(row.names)
                self._unused.update(dict.fromkeys(unused_columns(row.names)))
            places = known[row.names]
            try:
                question = question_from(places, row.values, is_json)
            except BadRecord as error:
                self._problems.append(Problem(row.number, str(error)))
                continue
            self._look_at(row, question, places)
            yield row.number, question

    def _look_at(self, row: Row, question: LabelledQuestion, places: dict[str, int]) -> None:
        if any(_is_strange(row.values[place]) for place in places.values()):
            self._cleaned.append(row.number)
        if self._table.names is not None and "\n" in question.question:
            self._broken_lines.append(row.number)
        origin = row.values[places["origin"]] if "origin" in places else ""
        if origin and origin_named(str(origin)) is None:
            self._origins[str(origin)] = None

    def _remarks(self) -> Iterable[str]:
        if self._unused:
            yield unused_remark(tuple(self._unused))
        if self._cleaned:
            yield f"Characters that cannot be shown were taken out of {numbered(self._cleaned)}."
        if self._origins:
            yield f"Origins that are not known, such as {listed(tuple(self._origins))}, are kept as uploaded."
        if self._broken_lines:
            where = numbered(self._broken_lines)
            yield f"A question goes over several lines in {where}. Check that no quotation mark is missing there."


def limits(questions: Sequence[LabelledQuestion]) -> tuple[str, ...]:
    """What cannot be measured with these questions, in plain words."""
    if not questions:
        return ()
    answerable = sum(question.expected.is_answerable for question in questions)
    found = []
    if answerable == len(questions):
        found.append(
            f"Every question is labelled {Expected.CORRECT}. How often a question that the documents do not answer is "
            "taken for answered cannot be measured: add some of those."
        )
    if not answerable:
        found.append(
            f"No question is labelled {Expected.CORRECT}. How often a question that the documents answer is recognised "
            "cannot be measured: add some of those."
        )
    if len(questions) < FEW:
        found.append(
            f"There are fewer than {FEW} questions ({len(questions)}). One of them is {1 / len(questions):.0%} of all, "
            "so a small difference between two thresholds cannot be measured."
        )
    return tuple(found)


def numbered(rows: Sequence[int]) -> str:
    """How many rows, and which the first of them are."""
    first = ", ".join(f"{row}" for row in rows[:_MOST_ROWS_NAMED])
    more = f" and {len(rows) - _MOST_ROWS_NAMED:,} more" if len(rows) > _MOST_ROWS_NAMED else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {first}{more}"


def _repeated(rows: Sequence[int]) -> tuple[str, ...]:
    if not rows:
        return ()
    return (f"{len(rows):,} repeated with the same label: {numbered(rows)}. Each question is kept once.",)


def _describe(found: Contradiction) -> Problem:
    firsts: dict[Expected, int] = {}
    for row, expected in found.labels:
        firsts.setdefault(expected, row)
    labels = ", ".join(f"row {row} says {expected}" for expected, row in firsts.items())
    others = len(found.labels) - len(firsts)
    more = f" ({others:,} more say one of these)" if others else ""
    return Problem(
        found.row, f"Expected one label for a question, but {labels}{more}. None is kept: correct one, or take one out."
    )


def _is_strange(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_strange, value))
    return isinstance(value, str) and STRANGE.search(value) is not None
