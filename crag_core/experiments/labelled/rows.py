"""Rows of CSV or JSONL with their line numbers; a broken row does not stop the others."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.text.csv_cells import as_it_was
from crag_core.experiments.labelled.columns import known_columns

_DELIMITERS = (",", ";", "\t")
_SEPARATOR_LINE = re.compile(r"sep=([,;\t])\s*$", re.IGNORECASE)
_VISIBLE = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ufeff]")
_GAP = re.compile(r"[\s,]*")
_NEXT_OBJECT = re.compile(r"\n[ \t]*(?=\{)")
_MOST_BROKEN = 1000  # to find the line of a fault, json counts lines from the start of the list


@dataclass(frozen=True, slots=True)
class Problem:
    """`row` as a person counts it: the line of the file on which the row starts, from 1."""

    row: int
    message: str


@dataclass(frozen=True, slots=True)
class Row:
    """`values` stand beside the `names` of their columns. They are text, or in JSON whatever JSON has."""

    number: int
    names: tuple[str, ...]
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """`names` are those of the header on line `header`, None where each row brings its own."""

    names: tuple[str, ...] | None
    header: int
    rows: Iterator[Row | Problem]


def table_of(text: str) -> Table:
    """JSONL where `text` begins with "{", a JSON list where with "[", else CSV; lines end in "\\n".

    Raises `BadRecord` where no row can be read at all.
    """
    start = _VISIBLE.search(text)
    if start and start[0] == "{":
        _check_lines(text)
        return Table(None, 1, _json_lines(text))
    if start and start[0] == "[":
        return Table(None, 1, _json_list(text))
    return _csv_table(text)


# --- CSV ------------------------------------------------------------------------------------------------------------


def _csv_table(text: str) -> Table:
    lines = list(io.StringIO(text))
    first = next(number for number, line in enumerate(lines) if line.strip("\ufeff\n\t "))
    declared = _SEPARATOR_LINE.match(lines[first].lstrip("\ufeff"))
    delimiters = (declared[1],) if declared else _DELIMITERS
    headers = [_header(lines, first + bool(declared), delimiter) for delimiter in delimiters]
    delimiter, header = max(
        zip(delimiters, headers, strict=True), key=lambda one: (len(known_columns(one[1].names)), len(one[1].names))
    )
    if not header.names:
        raise BadRecord("The first line cannot be read as a header.", hint="Write: question,expected")
    return Table(header.names, header.number, _csv_rows(lines, header, delimiter))


def _header(lines: list[str], start: int, delimiter: str) -> Row:
    """Without names where there is no header by that delimiter."""
    for number, cells in _records(lines, start, delimiter):
        if isinstance(cells, Problem):
            break
        if any(cell.strip() for cell in cells):
            return Row(number, tuple(cells), ())
    return Row(start + 1, (), ())


def _csv_rows(lines: list[str], header: Row, delimiter: str) -> Iterator[Row | Problem]:
    records = _records(lines, header.number - 1, delimiter)
    next(records)
    wide = len(header.names)
    for number, cells in records:
        if isinstance(cells, Problem):
            yield cells
        elif any(cell.strip() for cell in cells[wide:]):
            yield Problem(
                number,
                f"Expected {wide} cells as in the header, found {len(cells)}. "
                f"Put a text that holds {_named(delimiter)} into quotation marks.",
            )
        elif any(cell.strip() for cell in cells):
            yield Row(number, header.names, tuple(map(as_it_was, cells[:wide])) + ("",) * (wide - len(cells)))


def _records(lines: list[str], start: int, delimiter: str) -> Iterator[tuple[int, list[str] | Problem]]:
    """After a broken record it goes on with the line below, so that a stray quotation mark swallows no other rows."""
    while start < len(lines):
        rest = (lines[at] for at in range(start, len(lines)))
        reader = csv.reader(rest, delimiter=delimiter, strict=True, skipinitialspace=True)
        begun = start
        try:
            for cells in reader:
                yield begun + 1, cells
                begun = start + reader.line_num
        except csv.Error as error:
            yield begun + 1, Problem(begun + 1, _fault(str(error), delimiter))
            start = begun + 1
        else:
            return


def _fault(error: str, delimiter: str) -> str:
    if "unexpected end" in error:
        found = "a quotation mark that is never closed"
    elif "field larger" in error:
        found = (
            f"a cell of more than {csv.field_size_limit():,} characters, perhaps a quotation mark that is not closed"
        )
    else:
        found = f"other text than {_named(delimiter)} after a closing quotation mark"
    return f"This row has {found}. Write quotation marks inside a quoted text twice."


def _named(delimiter: str) -> str:
    return {",": "a comma", ";": "a semicolon"}.get(delimiter, "a tab")


# --- JSON -----------------------------------------------------------------------------------------------------------


def _check_lines(text: str) -> None:
    """Otherwise each line of an object that is spread over many of them would be told as a row that is broken."""
    first = text.lstrip("\ufeff \t\n").partition("\n")[0]
    if isinstance(_value(first), str) and not isinstance(_value(text.strip("\ufeff \t\n")), str):
        raise BadRecord(
            "This is one JSON object over several lines.",
            hint="Write one object a line, or a list of objects, each with a question.",
        )


def _json_lines(text: str) -> Iterator[Row | Problem]:
    for number, line in enumerate(io.StringIO(text), start=1):
        line = line.strip("\ufeff \t\n")
        if line:
            value = _value(line)
            yield Problem(number, value) if isinstance(value, str) else _row(number, value[0])


def _value(text: str) -> tuple[Any] | str:
    """The value in a tuple, or what is wrong."""
    try:
        return (json.loads(text, object_pairs_hook=tuple),)
    except RecursionError:
        return "This nests too deep. Write an object with a question and its label."
    except ValueError as error:
        return _malformed(error)


def _json_list(text: str) -> Iterator[Row | Problem]:
    decoder = json.JSONDecoder(object_pairs_hook=tuple)
    at, counted, number, broken = text.index("[") + 1, 0, 1, 0
    while True:
        at = _end_of_gap(text, at)
        number, counted = number + text.count("\n", counted, at), at
        if text[at : at + 1] in ("", "]"):
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            broken += 1
            following = _NEXT_OBJECT.search(text, at) if isinstance(error, ValueError) else None
            if following is None or broken > _MOST_BROKEN:
                yield Problem(number, f"{_malformed(error)} Nothing after this was read.")
                return
            at = following.end()
            line = number + text.count("\n", counted, at)
            yield Problem(number, f"{_malformed(error)} Reading went on at line {line}.")
        else:
            yield _row(number, value)
    if text[at:].strip() != "]":
        found = "text after its end" if text[at:] else "no closing bracket"
        yield Problem(number, f"Expected one JSON list, found {found}. Check that the file is complete.")


def _end_of_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _row(number: int, value: Any) -> Row | Problem:
    if not isinstance(value, tuple):
        return Problem(
            number, 'Expected an object such as {"question": "…", "expected": "CORRECT"}, found another value.'
        )
    return Row(number, tuple(name for name, _ in value), tuple(found for _, found in value))


def _malformed(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "This nests too deep."
    where = f": {error.msg} at character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
    return f"This is not valid JSON{where}. Expected an object with a question and its label."
