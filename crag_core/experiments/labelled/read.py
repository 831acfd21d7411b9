"""Reads labelled questions from an uploaded file, and writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import islice

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import to_plain
from crag_core.base.text.csv_cells import written
from crag_core.experiments.labelled.columns import listed, missing_columns, question_from, unused_columns
from crag_core.experiments.labelled.decoding import cleaned, decoded
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
    return _read_table(table, guesses)


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


def _read_table(table: Table, remarks: tuple[str, ...]) -> Read:
    rows, problems = _first_rows(table)
    headers = dict.fromkeys(row.names for row in rows)
    names = table.names or tuple(dict.fromkeys(name for header in headers for name in header))
    where = f"on line {table.header} the columns" if table.names else "objects with the fields"
    if (rows or table.names) and (missing := missing_columns(names, where)):
        problems, rows = [*problems, Problem(table.header, missing)], []
    labelled: list[tuple[int, LabelledQuestion]] = []
    for row in rows:
        try:
            labelled.append((row.number, question_from(row.names, row.values, table.names is None)))
        except BadRecord as error:
            problems.append(Problem(row.number, str(error)))
    settled = settle(labelled)
    problems += map(_describe, settled.contradictions)
    if not settled.questions and not problems:
        problems.append(Problem(table.header, "This file has no questions. Write one a row."))
    if rows and (unused := dict.fromkeys(name for header in headers for name in unused_columns(header))):
        remarks += (f"Not read: {listed(tuple(unused))}.",)
    if table.names and (split := [number for number, question in labelled if "\n" in question.question]):
        where = numbered(split)
        remarks += (f"A question goes over several lines in {where}. Check that no quotation mark is missing there.",)
    if settled.repeated:
        count, where = len(settled.repeated), numbered(settled.repeated)
        remarks += (f"{count:,} repeated with the same label: {where}. Each question is kept once.",)
    return Read(
        settled.questions,
        tuple(sorted(problems, key=lambda problem: problem.row)),
        (*remarks, *limits(settled.questions)),
    )


def _first_rows(table: Table) -> tuple[list[Row], list[Problem]]:
    """At most `MOST_ROWS` of both together."""
    found = list(islice(table.rows, MOST_ROWS))
    rows = [one for one in found if isinstance(one, Row)]
    problems = [one for one in found if isinstance(one, Problem)]
    more = next(table.rows, None)
    if more is not None:
        at = more.number if isinstance(more, Row) else more.row
        message = f"Expected at most {MOST_ROWS:,} rows, found more. Nothing from this row on was read: "
        problems.append(Problem(at, message + "put the rest into a second file."))
    return rows, problems


def limits(questions: Sequence[LabelledQuestion]) -> tuple[str, ...]:
    """What cannot be measured with these questions, in plain words."""
    if not questions:
        return ()
    kinds = {question.expected.is_answerable for question in questions}
    found = []
    if kinds == {True}:
        found.append(
            f"Every question is labelled {Expected.CORRECT}. How often a question that the documents do not answer is "
            "taken for answered cannot be measured: add some of those."
        )
    if kinds == {False}:
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


def _describe(found: Contradiction) -> Problem:
    """At the first row that contradicts one before it."""
    firsts: dict[Expected, int] = {}
    for row, expected in found:
        firsts.setdefault(expected, row)
    labels = ", ".join(f"row {row} says {expected}" for expected, row in firsts.items())
    others = len(found) - len(firsts)
    more = f" ({others:,} more say one of these)" if others else ""
    hint = "None is kept: correct one, or take one out."
    return Problem(list(firsts.values())[1], f"Expected one label for a question, but {labels}{more}. {hint}")
