"""Reads labelled questions from an uploaded file, and writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.text.csv_cells import written
from crag_core.experiments.labelled.file_rows import Problem as Problem
from crag_core.experiments.labelled.file_rows import Row, Table, cleaned, decoded, table_of
from crag_core.experiments.labelled.questions import (
    LABELS,
    WORDS,
    Contradiction,
    Expected,
    LabelledQuestion,
    Origin,
    UnlabelledQuestion,
    settle,
    word,
)

COLUMNS = {
    "question": ("question", "query", "q"),
    "expected": ("expected", "route", "label", "expected_route", "action"),
    "answerable": ("answerable",),
    "answers": ("answers", "answer", "gold_answers", "gold_answer"),
    "document": ("document", "gold_document", "doc", "file", "source"),
    "without": ("without",),
    "note": ("note",),
    "origin": ("origin",),
    "log": ("log",),
    "record": ("record",),
    "collection": ("collection",),
}
"""By what a column means, the names that it may have, the best one first."""

LONGEST_QUESTION = 2000  # characters

_SEPARATORS = re.compile(r"[\W_]+")
_MEANING = {
    _SEPARATORS.sub("", name): (meaning, rank) for meaning, names in COLUMNS.items() for rank, name in enumerate(names)
}
_EXPECTED = {
    _SEPARATORS.sub("", name.casefold()): label
    for label, words in WORDS.items()
    for name in (label, LABELS[label], *words)
}
_SHOWN_LABELS = f"{', '.join(map(word, Expected))} (or {', '.join(Expected)})"
_ANSWERABLE = {
    **dict.fromkeys(("true", "1", "1.0", "yes"), True),  # 1.0: what pandas makes of a column with gaps
    **dict.fromkeys(("false", "0", "0.0", "no"), False),
}
_MOST_NAMED, _MOST_SHOWN = 10, 60
MOST_ROWS = 100_000
_MOST_ROWS_NAMED = 5


@lru_cache
def known_columns(names: tuple[str, ...]) -> dict[str, int]:
    """By what it means, the place of the column that is read; the best name counts, of equal ones the first."""
    found: dict[str, tuple[int, int]] = {}
    for place, name in enumerate(names):
        meaning, rank = _MEANING.get(_squeezed(name), ("", 0))
        if meaning:
            found[meaning] = min(found.get(meaning, (rank, place)), (rank, place))
    return {meaning: place for meaning, (_, place) in found.items()}


def missing_columns(names: tuple[str, ...], header: str) -> str:
    """What is wrong with these columns, "" if nothing is. `header` says where they are named."""
    known = known_columns(names)
    wanted = [] if "question" in known else ["'question'"]
    wanted += [] if {"expected", "answerable"} & known.keys() else ["'label' (or 'answerable')"]
    if not wanted:
        return ""
    return f"Expected {header} {' and '.join(wanted)}, found {listed(names)}. Name the columns so."


def unused_columns(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those with a name that are not read."""
    used = set(known_columns(names).values())
    return tuple(name for place, name in enumerate(names) if place not in used and cleaned(name))


def question_from(names: tuple[str, ...], values: Sequence[Any], is_json: bool) -> LabelledQuestion:
    """Raises `BadRecord` with what is wrong with this row."""
    known = known_columns(names)

    def said(meaning: str) -> Any:
        return values[known[meaning]] if meaning in known else None

    question = _question(said("question"))
    try:
        return LabelledQuestion(
            question,
            _label(said("expected"), said("answerable")),
            _answers(said("answers"), is_json),
            _text("document", said("document")),
            _text("without", said("without")),
            _origin(_text("origin", said("origin"))),
            _text("note", said("note")),
            _text("log", said("log")),
            _text("record", said("record")),
            _text("collection", said("collection")),
        )
    except ValueError as error:
        raise BadRecord(f"{str(error).capitalize()}.", hint="Change the label, or empty the cell 'without'.") from None


def _question(value: Any) -> str:
    question = _text("question", value)
    if not question:
        raise BadRecord("Expected a question, found none.", hint="Write one, or take this row out.")
    if len(question) > LONGEST_QUESTION:
        raise BadRecord(
            f"Expected a question of at most {LONGEST_QUESTION:,} characters, found {len(question):,}.",
            hint="Shorten it, and look for a quotation mark that is not closed.",
        )
    return question


def expected_named(name: str) -> Expected | None:
    """None for a name that is not known; case, spaces and dashes do not matter."""
    return _EXPECTED.get(_squeezed(name))


def listed(names: Sequence[Any]) -> str:
    """The first of them, in quotation marks, and how many more there are."""
    shown = ", ".join(_shown(name) for name in names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else shown or "none"


# --- values ---------------------------------------------------------------------------------------------------------


def _label(expected: Any, answerable: Any) -> Expected:
    name = _text("label", expected)
    truth = str(answerable).lower() if isinstance(answerable, bool) else _text("answerable", answerable).lower()
    label, can_be_answered = expected_named(name), _ANSWERABLE.get(truth)
    if name and label is None:
        near = get_close_matches(_squeezed(name), _EXPECTED, n=1)
        guess = f"Did you mean {word(_EXPECTED[near[0]])} ({_EXPECTED[near[0]]})? " if near else ""
        raise BadRecord(f"Expected one of {_SHOWN_LABELS}, found {_shown(name)}.", hint=f"{guess}Change the label.")
    if truth and can_be_answered is None:
        raise BadRecord(f"Expected true or false for 'answerable', found {_shown(truth)}.", hint="Change it.")
    if label is None and can_be_answered is None:
        raise BadRecord("Expected a label, found none.", hint=f"Write one of {_SHOWN_LABELS}.")
    if label is None:
        return Expected.CORRECT if can_be_answered else Expected.UNANSWERABLE
    if can_be_answered not in (None, label.is_answerable):
        raise BadRecord(
            f"Expected two labels that agree, found {label} and answerable = {truth}.", hint="Correct one of them."
        )
    return label


def _origin(name: str) -> Origin:
    return Origin(name.lower()) if name.lower() in list(Origin) else Origin.UPLOADED


def _answers(value: Any, is_json: bool) -> tuple[str, ...]:
    """A list, or one text; in a cell a list in JSON, or texts with "|" between them."""
    if isinstance(value, str) and not is_json:
        value = _json_texts(value) or value.split("|")
    texts = (_text("answers", text) for text in (value if isinstance(value, list) else [value]))
    return tuple(text for text in texts if text)


def _json_texts(cell: str) -> list[str] | None:
    if not cell.lstrip().startswith("["):
        return None
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    return found if all(isinstance(text, str) for text in found) else None


def _text(meaning: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return cleaned(value or "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    kind = {bool: "true or false", list: "a list", dict: "an object"}.get(type(value), "another value")
    raise BadRecord(f"Expected text for '{meaning}', found {kind}.", hint="Write it as text.")


def _squeezed(name: str) -> str:
    return _SEPARATORS.sub("", name.casefold())


def _shown(value: Any) -> str:
    text = " ".join(cleaned(str(value)).split())
    return f"'{text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + '…'}'"


# --- a whole file -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Read:
    """Each row of the file is a question, a repetition that a remark counts, or is named by a problem.

    `unlabelled` are the questions of a file that has no labels, each once: then there are no other questions.

    `problems` are in the order of their rows. `remarks` tell what was guessed, left aside, or cannot be measured.
    """

    questions: tuple[LabelledQuestion, ...]
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...]
    unlabelled: tuple[UnlabelledQuestion, ...] = ()


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
    return "".join(f"{json.dumps(question.plain)}\n" for question in questions)


def write_csv(questions: Iterable[LabelledQuestion]) -> str:
    """As `write_questions`, for a spreadsheet, which takes it for UTF-8 only if it is encoded as `utf-8-sig`.

    Text that a spreadsheet would take for a formula is marked, and read again as the question that was asked.
    """
    plain = [{**question.plain, "answers": _cell_of(question.answers)} for question in questions]
    names = [field.name for field in fields(LabelledQuestion)]
    header = [name for name in names if any(name in row for row in plain)] or names
    return written([header, *([row.get(name, "") for name in header] for row in plain)])


def _cell_of(answers: Sequence[str]) -> str:
    is_plain = not any("|" in answer or answer.startswith("[") for answer in answers)
    return "|".join(answers) if is_plain else json.dumps(answers)


def _read_table(table: Table, remarks: tuple[str, ...]) -> Read:
    rows, problems = _first_rows(table)
    headers = dict.fromkeys(row.names for row in rows)
    names = table.names or tuple(dict.fromkeys(name for header in headers for name in header))
    if _are_without_labels(headers):
        return _read_unlabelled(rows, problems)
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


def _are_without_labels(headers: Iterable[tuple[str, ...]]) -> bool:
    """Questions, and no column that might be meant for labels."""
    known = [known_columns(names).keys() for names in headers]
    has_labels = any(one & {"expected", "answerable"} for one in known) or any(map(unused_columns, headers))
    return any("question" in one for one in known) and not has_labels


def _read_unlabelled(rows: Sequence[Row], problems: list[Problem]) -> Read:
    found: dict[str, UnlabelledQuestion] = {}
    for row in rows:
        try:
            known = known_columns(row.names)
            said = [row.values[known[name]] if name in known else None for name in ("question", "log", "record")]
            asked = UnlabelledQuestion(_question(said[0]), _text("log", said[1]), _text("record", said[2]))
            found.setdefault(asked.key, asked)
        except BadRecord as error:
            problems.append(Problem(row.number, str(error)))
    return Read((), tuple(sorted(problems, key=lambda problem: problem.row)), (), tuple(found.values()))


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
