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
_PACKED = {
    b"\x1f\x8b": "It is packed with gzip: unpack it first.",
    b"PK\x03\x04": "It is an Excel or ZIP file: save the table as CSV (UTF-8), or unpack it.",
}
_CONTROL_BYTES = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n\v\f\r")
_SAMPLED, _MOST_CONTROL = 8192, 0.05  # bytes, share
_CONTROL = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_LINE_END = re.compile("\r\n?")
_HALF = re.compile("[\ud800-\udfff]")
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_BLANK = "\ufeff \t\n"
_GAP = re.compile(r"[\s,]*")


def decoded(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text, its lines ending in "\\n", and remarks on what had to be guessed.

    UTF-8, UTF-16 or UTF-32 by their marks, UTF-8 without one, else Windows-1252. Raises `BadRecord` for anything else.
    """
    encoding = next((name for mark, name in _ENCODINGS.items() if content.startswith(mark)), "")
    sample = content[:_SAMPLED]
    is_binary = len(sample) - len(sample.translate(None, _CONTROL_BYTES)) > _MOST_CONTROL * len(sample)
    packed = next((hint for mark, hint in _PACKED.items() if content.startswith(mark)), "")
    if packed or (is_binary and not encoding):
        hint = packed or "Save it as CSV (from Excel too) or JSONL, encoded as UTF-8."
        raise BadRecord("This is not a text file.", hint=hint)
    remarks: tuple[str, ...] = ()
    try:
        text = content.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        text, remark = _decode_damaged(content, encoding)
        remarks = (remark,)
    if not cleaned(text):
        raise BadRecord("This file is empty.", hint="Choose a CSV or JSONL file with one question a row.")
    return _LINE_END.sub("\n", text), remarks


def cleaned(text: str) -> str:
    """`text` without surrounding white space, control characters and byte order marks; lines end in "\\n".

    Half of a surrogate pair becomes the replacement character.
    """
    return _HALF.sub("\ufffd", _CONTROL.sub("", _LINE_END.sub("\n", text))).strip()


def _decode_damaged(content: bytes, encoding: str) -> tuple[str, str]:
    text = content.decode(encoding or "utf-8", "replace")
    line = text.count("\n", 0, text.find("\ufffd")) + 1
    damaged = text.count("\ufffd")
    others = len(text) - len(text.encode("ascii", "ignore")) - damaged
    if encoding or others > damaged:  # two bytes that are UTF-8 by chance are rare in any other encoding
        name = (encoding or "utf-8").removesuffix("-sig").upper()
        return text, f"Line {line} is not valid {name}; what could not be read is shown as \ufffd."
    hint = "If letters such as ä or é look wrong, save it as UTF-8 and upload it again."
    remark = f"The file is not UTF-8 (line {line}), so it was read as Windows-1252. {hint}"
    return content.decode("cp1252", "replace"), remark


@dataclass(frozen=True, slots=True)
class Problem:
    """`row` as a person counts it: the line of the file on which it starts, or its place in a JSON list, from 1."""

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
    start = text.lstrip(_BLANK)[:1]
    if start in ("{", "["):
        return Table(None, 1, _json_lines(text) if start == "{" else _json_list(text))
    lines = list(io.StringIO(text))
    first = next(number for number, line in enumerate(lines) if line.strip(_BLANK))
    delimiter = max(_DELIMITERS, key=lines[first].count)
    records = _records(lines, first, delimiter)
    number, header = next(records)
    if isinstance(header, Problem):
        raise BadRecord("The first line cannot be read as a header.", hint="Write: question,label")
    return Table(tuple(header), number, _csv_rows(tuple(header), records, delimiter))


def _csv_rows(
    names: tuple[str, ...], records: Iterator[tuple[int, list[str] | Problem]], delimiter: str
) -> Iterator[Row | Problem]:
    wide = len(names)
    for number, cells in records:
        if isinstance(cells, Problem):
            yield cells
        elif any(cell.strip() for cell in cells[wide:]):
            hint = f"Put a text that holds {_DELIMITERS[delimiter]} into quotation marks."
            yield Problem(number, f"Expected {wide} cells as in the header, found {len(cells)}. {hint}")
        elif any(cell.strip() for cell in cells):
            yield Row(number, names, tuple(map(as_it_was, cells[:wide])) + ("",) * (wide - len(cells)))


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
            hint = f"Put texts that hold {_DELIMITERS[delimiter]} into quotation marks, and close them."
            yield begun + 1, Problem(begun + 1, f"This row cannot be read ({error}). {hint}")
            start = begun + 1
        else:
            return


def _json_lines(text: str) -> Iterator[Row | Problem]:
    for number, line in enumerate(io.StringIO(text), start=1):
        if line := line.strip(_BLANK):
            try:
                yield row_of(number, json.loads(line))
            except (ValueError, RecursionError) as error:
                yield Problem(number, _malformed(error))


def _json_list(text: str) -> Iterator[Row | Problem]:
    """Numbered by their places from 1. A fault ends it."""
    decoder, at = json.JSONDecoder(), text.index("[") + 1
    for number in count(1):
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        if text[at : at + 1] == "]":
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            yield Problem(number, f"{_malformed(error)} Nothing after this was read.")
            return
        yield row_of(number, value)


def row_of(number: int, value: Any) -> Row | Problem:
    if isinstance(value, dict):
        return Row(number, tuple(value), tuple(value.values()))
    return Problem(number, 'Expected an object such as {"question": "…"}, found another value.')


def _malformed(error: Exception) -> str:
    where = f": {error.msg} at character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
    return f"This is not valid JSON{where}. Expected an object with a question."


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
