"""Reads labelled questions from an uploaded file, and writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.text.csv_cells import written
from crag_core.base.text.display import shortened
from crag_core.experiments.labelled.file_rows import Problem as Problem
from crag_core.experiments.labelled.file_rows import Row, Table, cleaned, decoded, first_rows, table_of
from crag_core.experiments.labelled.questions import (
    LABELS,
    WORDS,
    Expected,
    LabelledQuestion,
    Origin,
    UnlabelledQuestion,
    settle,
    word,
)

_TEXTS = ("document", "without", "note", "log", "record", "collection")
COLUMNS = {
    "question": ("question", "query", "q"),
    "expected": ("expected", "route", "label", "expected_route", "action", "answerable"),
    "answers": ("answers", "answer", "gold_answers", "gold_answer"),
    "origin": ("origin",),
    **{name: (name,) for name in _TEXTS},
    "document": ("document", "gold_document", "doc", "file", "source"),
}
"""By what a column means, the names that it may have, the best one first."""

LONGEST_QUESTION = 2000  # characters
MOST_ROWS = 100_000
_MOST_NAMED, _MOST_SHOWN, _MOST_ROWS_NAMED = 10, 60, 5

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
    **dict.fromkeys(("true", "1", "10", "yes"), Expected.CORRECT),  # 1.0: of pandas, in a column with gaps
    **dict.fromkeys(("false", "0", "00", "no"), Expected.UNANSWERABLE),
}


@dataclass(frozen=True)
class Read:
    """Each row of the file is a question, a repetition that a remark counts, or is named by a problem.

    `unlabelled` are the questions of a file that has no labels, each once: then there are no other questions.

    `problems` are in the order of their rows. `remarks` tell what was guessed or left aside.
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
        return _read_table(table_of(text), guesses)
    except BadRecord as error:
        return Read((), (Problem(0, f"{cleaned(name)[:60]}: {error}"),), ())


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


def expected_named(name: str) -> Expected | None:
    """None for a name that is not known; case, spaces and dashes do not matter."""
    return _EXPECTED.get(squeezed(name))


def label_named(name: str) -> Expected | None:
    """The same, or yes and no, as a column "answerable" has them."""
    return expected_named(name) or _ANSWERABLE.get(squeezed(name))


def _read_table(table: Table, remarks: tuple[str, ...]) -> Read:
    rows, problems = first_rows(table.rows, MOST_ROWS)
    headers = dict.fromkeys(tuple(row.values) for row in rows)
    unused = dict.fromkeys(name for header in headers for name in _unused(header))
    known = [_columns(names) for names in headers]
    has_labels = bool(unused) or any("expected" in one for one in known)
    if not has_labels and any("question" in one for one in known):
        return _read_unlabelled(rows, problems)
    names = table.names or tuple(dict.fromkeys(name for header in headers for name in header))
    where = f"on line {table.header} the columns" if table.names else "objects with the fields"
    if (rows or table.names) and (missing := _missing(names, where)):
        problems, rows, unused = [*problems, Problem(table.header, missing)], [], {}
    labelled: list[tuple[int, LabelledQuestion]] = []
    for row in rows:
        try:
            labelled.append((row.number, _labelled(row, table.names is None)))
        except BadRecord as error:
            problems.append(Problem(row.number, str(error)))
    settled = settle(labelled)
    problems += map(_contradicted, settled.contradictions)
    if not settled.questions and not problems:
        problems.append(Problem(table.header, "This file has no questions. Write one a row."))
    if unused:
        remarks += (f"Not read: {_listed(tuple(unused))}.",)
    if settled.repeated:
        first = ", ".join(map(str, settled.repeated[:_MOST_ROWS_NAMED]))
        more = " …" if len(settled.repeated) > _MOST_ROWS_NAMED else ""
        where = "row" if len(settled.repeated) == 1 else "rows"
        remarks += (f"{len(settled.repeated):,} repeated with the same label, in {where} {first}{more}.",)
    return Read(settled.questions, _in_order(problems), remarks)


def _read_unlabelled(rows: Sequence[Row], problems: list[Problem]) -> Read:
    found: dict[str, UnlabelledQuestion] = {}
    for row in rows:
        try:
            said = _by_meaning(row)
            texts = (_text(name, said.get(name)) for name in ("log", "record"))
            asked = UnlabelledQuestion(_question(said), *texts)
            found.setdefault(asked.key, asked)
        except BadRecord as error:
            problems.append(Problem(row.number, str(error)))
    return Read((), _in_order(problems), (), tuple(found.values()))


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: problem.row))


# --- columns --------------------------------------------------------------------------------------------------------


@lru_cache
def _columns(names: tuple[str, ...]) -> dict[str, str]:
    """By what it means, the name of the column that is read; the best name counts, of equal ones the first."""
    found: dict[str, tuple[int, str]] = {}
    for name in names:
        meaning, rank = _MEANING.get(squeezed(name), ("", 0))
        if meaning and (meaning not in found or rank < found[meaning][0]):
            found[meaning] = rank, name
    return {meaning: name for meaning, (_, name) in found.items()}


def _missing(names: tuple[str, ...], header: str) -> str:
    """What is wrong with these columns, "" if nothing is. `header` says where they are named."""
    known = _columns(names)
    wanted = [] if "question" in known else ["'question'"]
    wanted += [] if "expected" in known else ["'label' (or 'answerable')"]
    return f"Expected {header} {' and '.join(wanted)}, found {_listed(names)}. Name the columns so." if wanted else ""


def _unused(names: tuple[str, ...]) -> list[str]:
    used = set(_columns(names).values())
    return [name for name in names if name not in used and cleaned(name)]


def _by_meaning(row: Row) -> dict[str, Any]:
    return {meaning: row.values[name] for meaning, name in _columns(tuple(row.values)).items()}


# --- one row --------------------------------------------------------------------------------------------------------


def _labelled(row: Row, is_json: bool) -> LabelledQuestion:
    """Raises `BadRecord` with what is wrong with this row."""
    said = _by_meaning(row)
    origin = _text("origin", said.get("origin")).lower()
    texts = {name: _text(name, said.get(name)) for name in _TEXTS}
    try:
        return LabelledQuestion(
            _question(said), _label(said.get("expected")), _answers(said.get("answers"), is_json),
            origin=Origin(origin) if origin in list(Origin) else Origin.UPLOADED, **texts,
        )  # fmt: skip
    except ValueError as error:
        raise BadRecord(f"{str(error).capitalize()}.", hint="Change the label, or empty the cell 'without'.") from None


def _question(said: Mapping[str, Any]) -> str:
    question = _text("question", said.get("question"))
    if not question:
        raise BadRecord("Expected a question, found none.", hint="Write one, or take this row out.")
    if len(question) > LONGEST_QUESTION:
        raise BadRecord(
            f"Expected a question of at most {LONGEST_QUESTION:,} characters, found {len(question):,}.",
            hint="Shorten it, and look for a quotation mark that is not closed.",
        )
    return question


def _label(value: Any) -> Expected:
    name = str(value) if isinstance(value, bool) else _text("label", value)
    if not name:
        raise BadRecord("Expected a label, found none.", hint=f"Write one of {_SHOWN_LABELS}.")
    if (label := label_named(name)) is not None:
        return label
    near = get_close_matches(squeezed(name), _EXPECTED, n=1)
    guess = f"Did you mean {word(_EXPECTED[near[0]])} ({_EXPECTED[near[0]]})? " if near else ""
    raise BadRecord(f"Expected one of {_SHOWN_LABELS}, found {_shown(name)}.", hint=f"{guess}Change the label.")


def _answers(value: Any, is_json: bool) -> tuple[str, ...]:
    """A list, or one text; in a cell a list in JSON, or texts with "|" between them."""
    if isinstance(value, str) and not is_json:
        value = _json_texts(value) or value.split("|")
    texts = (_text("answers", text) for text in (value if isinstance(value, list) else [value]))
    return tuple(filter(None, texts))


def _json_texts(cell: str) -> list[str] | None:
    try:
        found = json.loads(cell) if cell.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        return None
    return found if found and all(isinstance(text, str) for text in found) else None


def _text(meaning: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return cleaned(value or "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    kind = {bool: "true or false", list: "a list", dict: "an object"}.get(type(value), "another value")
    raise BadRecord(f"Expected text for '{meaning}', found {kind}.", hint="Write it as text.")


def squeezed(name: str) -> str:
    """As names of columns and labels are compared: case, spaces and dashes do not matter."""
    return _SEPARATORS.sub("", name.casefold())


# --- in words -------------------------------------------------------------------------------------------------------


def _shown(value: Any) -> str:
    return f"'{shortened(' '.join(cleaned(str(value)).split()), _MOST_SHOWN)}'"


def _listed(names: Sequence[Any]) -> str:
    """The first of them, in quotation marks, and how many more there are."""
    shown = ", ".join(map(_shown, names[:_MOST_NAMED]))
    return f"{shown} and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else shown or "none"


def _contradicted(labels: Mapping[int, Expected]) -> Problem:
    """At the first row that contradicts one before it."""
    firsts = {expected: row for row, expected in reversed([*labels.items()])}
    rows = sorted(firsts.values())
    told = ", ".join(f"row {row} says {word(labels[row])}" for row in rows)
    hint = "None is kept: correct one, or take one out."
    return Problem(rows[1], f"Expected one label for a question, but {told}. {hint}")
