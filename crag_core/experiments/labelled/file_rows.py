"""Rows of an uploaded CSV or JSONL file with their line numbers; a broken row does not stop the others."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.text.csv_cells import as_it_was

_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_PACKED = (b"\x1f\x8b", b"PK\x03\x04")  # gzip, and ZIP, as Excel has it
_CONTROL_BYTES = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n\v\f\r")
_SAMPLED, _MOST_CONTROL = 8192, 0.05  # bytes, share
_CONTROL = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_LINE_END = re.compile("\r\n?")
_HALF = re.compile("[\ud800-\udfff]")
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_BLANK = "\ufeff \t\n"
_GAP = re.compile(r"[\s,\ufeff]*")


def decoded(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text, its lines ending in "\\n", and remarks on what had to be guessed.

    UTF-8, UTF-16 or UTF-32 by their marks, UTF-8 without one, else Windows-1252. Raises `BadRecord` for anything else.
    """
    encoding = next((name for mark, name in _ENCODINGS.items() if content.startswith(mark)), "")
    sample = content[:_SAMPLED]
    is_binary = len(sample) - len(sample.translate(None, _CONTROL_BYTES)) > _MOST_CONTROL * len(sample)
    if content.startswith(_PACKED) or (is_binary and not encoding):
        hint = "Unpack it, or save it as CSV (from Excel too) or JSONL, encoded as UTF-8."
        raise BadRecord("This is not a text file.", hint=hint)
    remarks: tuple[str, ...] = ()
    try:
        text = content.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        text, remark = _damaged(content, encoding)
        remarks = (remark,)
    if not cleaned(text):
        raise BadRecord("This file is empty.", hint="Choose a CSV or JSONL file with one question a row.")
    return _LINE_END.sub("\n", text), remarks


def _damaged(content: bytes, encoding: str) -> tuple[str, str]:
    text = content.decode(encoding or "utf-8", "replace")
    line = text.count("\n", 0, text.find("\ufffd")) + 1
    told = f"Line {line} is not valid {(encoding or 'utf-8').removesuffix('-sig').upper()}"
    damaged = text.count("\ufffd")
    others = len(text) - len(text.encode("ascii", "ignore")) - damaged
    if encoding or others > damaged:  # two bytes that are UTF-8 by chance are rare in any other encoding
        return text, f"{told}; what could not be read is shown as \ufffd."
    hint = "If letters such as ä or é look wrong, save it as UTF-8 and upload it again."
    return content.decode("cp1252", "replace"), f"{told}, so the file was read as Windows-1252. {hint}"


def cleaned(text: str) -> str:
    """`text` without surrounding white space, control characters and byte order marks; lines end in "\\n".

    Half of a surrogate pair becomes the replacement character.
    """
    return _HALF.sub("\ufffd", _CONTROL.sub("", _LINE_END.sub("\n", text))).strip()


@dataclass(frozen=True, slots=True)
class Problem:
    """`row` as a person counts it: the line of the file on which it starts, or its place in a JSON list, from 1.

    0: the whole file.
    """

    row: int
    message: str

    @property
    def told(self) -> str:
        return f"Row {self.row}: {self.message}" if self.row else self.message


@dataclass(frozen=True, slots=True)
class Row:
    """`number` as `Problem.row`; `values` by the names of their columns are text, or in JSON whatever JSON has."""

    number: int
    values: dict[str, Any]


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
    if text.lstrip(_BLANK)[:1] in ("{", "["):
        return Table(None, 1, _json_rows(text))
    lines = list(io.StringIO(text))
    first = next(number for number, line in enumerate(lines) if line.strip(_BLANK))
    delimiter = max(_DELIMITERS, key=lines[first].count)
    rows = _csv_rows(lines, first, delimiter)
    line, names = next(rows, (first + 1, []))
    if isinstance(names, Problem):
        raise BadRecord("The first line cannot be read as a header.", hint="Write: question,label")
    return Table(tuple(names), line, (_under(names, number, cells, delimiter) for number, cells in rows))


def _under(names: list[str], number: int, cells: list[str] | Problem, delimiter: str) -> Row | Problem:
    """A row under its header; of columns with one name the first counts."""
    if isinstance(cells, Problem):
        return cells
    if any(cell.strip() for cell in cells[len(names) :]):
        hint = f"Put a text that holds {_DELIMITERS[delimiter]} into quotation marks."
        return Problem(number, f"Expected {len(names)} cells as in the header, found {len(cells)}. {hint}")
    values = dict.fromkeys(names, "")
    for name, cell in zip(reversed(names[: len(cells)]), reversed(cells[: len(names)]), strict=True):
        values[name] = as_it_was(cell)
    return Row(number, values)


def _csv_rows(lines: list[str], start: int, delimiter: str) -> Iterator[tuple[int, list[str] | Problem]]:
    """After a broken row it goes on with the line below, so that a stray quotation mark swallows no other rows."""
    while start < len(lines):
        rest = (lines[at] for at in range(start, len(lines)))
        reader = csv.reader(rest, delimiter=delimiter, strict=True, skipinitialspace=True)
        begun = start
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield begun + 1, cells
                begun = start + reader.line_num
            return
        except csv.Error as error:
            hint = f"Put texts that hold {_DELIMITERS[delimiter]} into quotation marks, and close them."
            yield begun + 1, Problem(begun + 1, f"This row cannot be read ({error}). {hint}")
            start = begun + 1


def _json_rows(text: str) -> Iterator[Row | Problem]:
    """Objects one after the other, numbered by their lines; after a fault the next line is tried.

    Those of a list are numbered by their places from 1, and a fault ends it.
    """
    decoder, line, seen = json.JSONDecoder(), 1, 0
    at = _gap_end(text, 0)
    is_list = text[at] == "["
    at += is_list
    for place in count(1):
        at = _gap_end(text, at)
        if text[at : at + 1] == ("]" if is_list else ""):
            return
        line, seen = line + text.count("\n", seen, at), at
        number = place if is_list else line
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            told = f": {error.msg} at character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            more = " Nothing after this was read." if is_list else ""
            yield Problem(number, f"This is not valid JSON{told}. Expected an object with a question.{more}")
            end = text.find("\n", at)
            if is_list or end < 0:
                return
            at = end
        else:
            yield row_of(number, value)


def _gap_end(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def row_of(number: int, value: Any) -> Row | Problem:
    if isinstance(value, dict):
        return Row(number, value)
    return Problem(number, 'Expected an object such as {"question": "…"}, found another value.')


def first_rows(found: Iterator[Row | Problem], most: int) -> tuple[list[Row], list[Problem]]:
    """At most so many of both together; a problem tells that there are more."""
    some = list(islice(found, most))
    rows = [one for one in some if isinstance(one, Row)]
    problems = [one for one in some if isinstance(one, Problem)]
    if (more := next(found, None)) is not None:
        message = f"Expected at most {most:,} rows, found more. Nothing from this row on was read: "
        problems.append(
            Problem(more.number if isinstance(more, Row) else more.row, f"{message}put the rest into a second file.")
        )
    return rows, problems
