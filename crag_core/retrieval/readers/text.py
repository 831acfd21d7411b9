"""Plain text, Markdown and CSV; and how text is normalised: its characters, hard-wrapped paragraphs, lists."""

from __future__ import annotations

import csv
import io
import re
import unicodedata

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.decoding import decode_text
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.tables import show_rows

_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f\x80-\x84\x86-\x9f\xad\ufeff\u200b\u2060\ud800-\udfff]")
# One way to write what people cannot tell apart, so that it is found: spaces, hyphens, letters drawn as one.
_ONE_WAY = {0x00A0: " ", 0x202F: " ", 0x2010: "-", 0x2011: "-"}
_ONE_WAY |= dict(zip(range(0xFB00, 0xFB07), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_BULLET = "[-*+\u2022\u2023\u25cf\u25cb\u25aa\u25e6\u2043\u2013\u2014\u00b7]"
_STARTS_ITEM = re.compile(
    rf"\s*(?:{_BULLET}\s|\(?(?:\d{{1,3}}|[A-Za-z]|[ivxIVX]{{1,5}})[.)]\s|[#>|]|```|~~~|\d+\s*:\s)"
)
_MARK = r"(?:-|\(?\w{1,4}[.)]|\d+(?:\.\d+)+)"
_HEADING = re.compile(r"\s*#{1,6}\s")
_NUMBER = re.compile(r"[-+(]?[$€£]?\d[\d.,:/%)-]*$")
_WIDE = ("W", "F")
# Narrower text is a list, a poem, an address or a table column as often as prose: its line breaks stay.
_NARROWEST_PROSE = 40
_FULL_LINE = 0.85
_DELIMITERS = ",;\t|"


def read_text(content: bytes, name: str) -> tuple[Page, ...]:
    return (Page(join_lines(normalise_text(decode_text(content)))),)


def read_csv(content: bytes, name: str) -> tuple[Page, ...]:
    """Every row becomes a line that carries its headers, so that no chunk holds bare figures."""
    text = normalise_text(decode_text(content))
    # Excel writes the delimiter into a first line.
    told = re.match(rf"sep=([{_DELIMITERS}])\n", text)
    delimiter = told[1] if told else _find_delimiter(text)
    text = text[told.end() if told else 0 :]
    notes = _notes_above(text, delimiter)
    try:
        lines = io.StringIO(text[len(notes) :], newline="")
        rows = [*csv.reader(lines, delimiter=delimiter, skipinitialspace=True)]
    except csv.Error as error:
        raise DocumentRefused(
            f"{name}: expected rows of comma-separated values, found {error}.",
            hint="Open it in a spreadsheet program and export it as CSV again, or rename it to .txt.",
        ) from error
    return (Page(notes + show_rows(rows)),)


def _notes_above(text: str, delimiter: str) -> str:
    """Lines that begin with "#", but for one that names the columns of the figures below it."""
    above = re.match(r"(?:#.*\n)*", text)
    notes = (above[0] if above else "").splitlines(keepends=True)
    below = text[sum(map(len, notes)) :].partition("\n")[0]
    if notes and any(map(str.isdigit, below)) and notes[-1].count(delimiter) == below.count(delimiter):
        notes.pop()
    return "".join(notes)


def _find_delimiter(text: str) -> str:
    """The delimiter that cuts the first lines into the most columns of the same number, outside quotes."""
    lines = [re.sub(r'"[^"]*"', "", line) for line in text.splitlines()[:50] if line.strip()]

    def count_columns(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line in lines]
        usual = max(set(counts), key=counts.count, default=0)
        return (counts.count(usual) if usual else 0, usual)

    return max(_DELIMITERS, key=count_columns)


def normalise_text(text: str) -> str:
    """LF line ends, composed letters, no control characters, no space at line ends, at most one blank line in a row."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\x85", "\n")
    text = re.sub("[\f\v\u2029]", "\n\n", text).translate(_ONE_WAY)
    text = unicodedata.normalize("NFC", _NOT_TEXT.sub("", text))
    # Possessive, from the start of a gap only: a long gap would take quadratic time.
    text = re.sub(r"(?<![ \t])[ \t]++\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n").rstrip()


def join_lines(text: str) -> str:
    """Turn hard-wrapped paragraphs into one line each.

    A break goes only where the line was full and the next one is neither indented nor an item, heading or table row: a
    break too many does little harm, but a table row that is joined to the next loses its meaning.
    """
    lines = text.split("\n")
    full = _full_width(lines)
    if full is None:
        return text
    pieces: list[str] = []
    previous = ""
    fenced = False
    for line in lines:
        fence = line.lstrip().startswith(("```", "~~~"))
        if pieces and not fenced and not fence and _continues(previous, line, full):
            pieces += (_gap(previous, line.lstrip()), line.strip())
        else:
            pieces += ("\n", line) if pieces else (line,)
        fenced ^= fence
        previous = line
    return "".join(pieces)


def raise_figures(before: str, text: str) -> str:
    """What stands above the line: behind a figure a figure may not join it ("10⁶")."""
    return text.translate(_RAISED) if before[-1:].isdigit() and text.strip("+-\u2212").isdigit() else text


def join_items(text: str) -> str:
    """Items of one list under one another, as in Markdown, without blank lines between."""
    return re.sub(rf"(?m)^({_MARK} .*)\n\n(?={_MARK} )", r"\1\n", text)


def starts_item(line: str) -> bool:
    """A list item, heading, quotation, table row or code fence opens here."""
    return bool(_STARTS_ITEM.match(line))


def _full_width(lines: list[str]) -> int | None:
    widths = sorted(width for line in lines if (width := _width(line)) > _NARROWEST_PROSE // 2)
    if len(widths) < 2:
        return None
    typical = widths[int(len(widths) * 0.8)]
    # A page of one-line paragraphs of 300 characters is not wrapped at 300.
    return typical if _NARROWEST_PROSE <= typical <= 160 else None


def _continues(previous: str, line: str, full: int) -> bool:
    if not previous.strip() or not line.strip() or starts_item(line) or _HEADING.match(previous):
        return False
    if previous.endswith("  ") or "|" in previous or "|" in line or is_row(previous) or is_row(line):
        return False
    if _indent(line) > _indent(previous) and not starts_item(previous):
        return False
    # The break was forced when the next line's first word would not have fitted.
    first = line.split(maxsplit=1)[0]
    return _width(previous) + 1 + _width(first) > full * _FULL_LINE


def glue_lines(left: str, right: str) -> str:
    """With a space between, except between Chinese or Japanese letters and after a hyphen."""
    return f"{left}{_gap(left, right)}{right}"


def _gap(left: str, right: str) -> str:
    is_broken = re.search(r"\w-$", left) and right[0].islower()
    return "" if is_broken or (_is_wide(left[-1]) and _is_wide(right[0])) else " "


def is_row(line: str) -> bool:
    """Columns of figures or a run of wide gaps."""
    words = line.split()
    figures = sum(bool(_NUMBER.match(word)) for word in words)
    # "2020." alone is the end of a sentence.
    only = figures == len(words) and not line.rstrip().endswith(".")
    mostly = only or (len(words) > 3 and figures * 5 >= len(words) * 2)
    return mostly or len(re.findall(r"\S(?: {3,}|\t)(?=\S)", line)) >= 2


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _width(line: str) -> int:
    line = line.strip()
    return len(line) if line.isascii() else sum(2 if _is_wide(letter) else 1 for letter in line)


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in _WIDE
