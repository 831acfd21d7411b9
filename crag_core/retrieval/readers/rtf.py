"""Rich Text Format (.rtf): headings, paragraphs, lists and tables, without pictures, hidden and deleted text.

Our own, since packages that convert RTF to plain text break emoji, show hidden and deleted text, drop footnotes, and
lose the headers of tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.shared.markdown_text import join_blocks, normalise_text
from crag_core.retrieval.readers.shared.tables import table_to_text

_DEEPEST = 1_000
_HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)
_DEEPEST_HEADING = 6
_BULLET = re.compile(r"\A[\u00b7\u2022\u25aa\u25cf\u25cb\u25e6\u00a7\uf0b7\uf0a7\u2013o-]\t\s*")
_NUMBER = re.compile(r"\A\(?(\d{1,3})[.)]\t\s*")
_TOKEN = re.compile(
    rb"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,9})? ?|\\'(?P<code>[0-9a-fA-F]{2})|\\(?P<sign>[^a-zA-Z])|"
    rb"(?P<brace>[{}])|(?P<text>[^\\{}\r\n]+)|[\r\n]+|\\",
    re.DOTALL,
)
# Groups that hold no text of the document. Those opened by "\*" are left out too,
# unless `SHOWN_IN` names them.
LEFT_OUT = frozenset(
    [
        *("annotation", "colortbl", "comment", "filetbl", "fldinst", "fonttbl", "footer", "footerf"),
        *("footerl", "footerr", "ftncn", "ftnsep", "ftnsepc", "header", "headerf", "headerl", "headerr"),
        *("info", "listtable", "listoverridetable", "nonesttables", "objdata", "pict", "revtbl", "rsidtbl"),
        *("rxe", "shpinst", "shprslt", "stylesheet", "tc", "tcn", "themedata", "txe", "upr", "xe"),
        *("xmlnstbl", "nonshppict", "mmathPr", "latentstyles", "datastore"),
    ]
)
# Groups that show text, by the destination in which they stand: text boxes in shapes, Unicode beside its replacement.
SHOWN_IN = {"shptxt": "shpinst", "ud": "upr", "footnote": "", "nesttableprops": ""}
SIGNS = {"~": "\u00a0", "_": "-", "-": "", "{": "{", "}": "}", "\\": "\\", "\n": "\n", "\r": "\n", "\t": "\t"}
WORDS = {
    "tab": "\t",
    "line": "\n",
    "emdash": "\u2014",
    "endash": "\u2013",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
    "zwj": "\u200d",
    "zwnj": "\u200c",
    "nestcell": " | ",
    "nestrow": "; ",
}
CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gb18030",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
"""Codecs of fonts by their character set; the others have that of the document."""


def read_rtf(content: bytes, name: str) -> tuple[Page, ...]:
    document = _Document(name)
    for token in tokenize(content.lstrip(b"\xef\xbb\xbf \t\r\n")):
        if token["brace"] == b"{":
            document.open_group()
        elif token["brace"]:
            if not document.close_group():
                break
        elif token["word"]:
            document.take_word(token["word"].decode("ascii"), int(token["number"]) if token["number"] else None)
        elif token["sign"]:
            document.take_sign(token["sign"].decode("latin-1"))
        elif token["code"]:
            document.take_code(int(token["code"], 16))
        elif token["text"]:
            document.take_text(token["text"])
    return (Page(normalise_text(document.finish())),)


@dataclass
class _Group:
    """Properties until the closing brace. `place` is the destination that is left out, "" where text is shown.

    `level` is that of a heading, 0 for other text; `replaced_by` counts the characters after a Unicode one that replace
    it in old programs.
    """

    place: str = ""
    is_note: bool = False
    opens_note: bool = False
    is_hidden: bool = False
    is_deleted: bool = False
    font: int | None = None
    style: int | None = None
    level: int = 0
    is_in_table: bool = False
    replaced_by: int = 1


class _Document:
    def __init__(self, name: str) -> None:
        self._name = name
        self._layout = Layout()
        self._code_page = "cp1252"
        self._default_font: int | None = None
        self._charsets: dict[int, str] = {}  # by font
        self._levels: dict[int, int] = {}  # of headings, by style
        self._outer: list[_Group] = []
        self._now = _Group()
        self._is_starred = False
        self._bytes = bytearray()
        self._is_raw = False
        self._to_skip = 0

    def open_group(self) -> None:
        self._decode()
        if len(self._outer) >= _DEEPEST:
            raise DocumentRefused(
                f"{self._name}: its groups are nested too deeply (over {_DEEPEST}).",
                hint="Open it in a word processor, save it again and add it.",
            )
        self._outer.append(self._now)
        self._now = replace(self._now, opens_note=False)
        self._to_skip = 0

    def close_group(self) -> bool:
        """False when this was the document's last one."""
        self._decode()
        if self._now.opens_note:
            self._layout.add("]", self._now.level)
        self._now = self._outer.pop() if self._outer else self._now
        self._to_skip = 0
        return bool(self._outer)

    def take_code(self, code: int) -> None:
        if self._to_skip:
            self._to_skip -= 1
        else:
            self._bytes.append(code)

    def take_text(self, text: bytes) -> None:
        skipped = min(self._to_skip, len(text))
        self._to_skip -= skipped
        self._bytes += text[skipped:]
        self._is_raw = self._is_raw or not text.isascii()

    def take_sign(self, sign: str) -> None:
        self._decode()
        if sign == "*":
            self._is_starred = True
        elif sign in "\r\n":
            self._end_paragraph()
        else:
            self._show(SIGNS.get(sign, ""))

    def take_word(self, word: str, number: int | None) -> None:
        self._decode()
        starred, self._is_starred = self._is_starred, False
        now, self._to_skip = self._now, 0
        if SHOWN_IN.get(word) == now.place:
            now.place = ""
            now.opens_note = now.is_note = word == "footnote"
            self._show(" [" if now.opens_note else "")
        elif word in LEFT_OUT or starred:
            now.place = now.place or word
        elif now.place:
            self._define(word, number or 0)
        elif word == "u" and number is not None:
            self._show(chr(number % 0x10000))
            self._to_skip = now.replaced_by
        elif word in WORDS:
            self._show(WORDS[word])
        elif word in ("par", "page", "sect", "column"):
            self._end_paragraph()
        elif word in ("cell", "row", "trowd", "cellx", "clmrg", "clvmrg"):
            self._layout.take_table(word, now.is_in_table)
        else:
            self._set_property(word, number)

    def finish(self) -> str:
        self._decode()
        return self._layout.finish()

    def _define(self, word: str, number: int) -> None:
        """A word inside the tables of fonts and styles."""
        now = self._now
        if word == "f":
            now.font = number
        elif word == "s":
            now.style = number
        elif word == "fcharset" and now.place == "fonttbl" and now.font is not None and number in CHARSETS:
            self._charsets[now.font] = CHARSETS[number]
        elif word == "outlinelevel" and now.place == "stylesheet" and now.style is not None:
            self._levels[now.style] = _find_level(number)

    def _set_property(self, word: str, number: int | None) -> None:
        """A word in the text that sets how what follows is read."""
        now = self._now
        match word:
            case "ansicpg":
                self._code_page = name_code_page(number or 0)
            case "mac" | "pc" | "pca":
                self._code_page = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
            case "deff":
                self._default_font = now.font = number
            case "f":
                now.font = number
            case "uc":
                now.replaced_by = max(number or 0, 0)
            case "v":
                now.is_hidden = number != 0
            case "deleted":
                now.is_deleted = number != 0
            case "plain":
                now.is_hidden = now.is_deleted = False
                now.font = self._default_font
            case "pard":
                now.level, now.is_in_table = 0, False
            case "intbl":
                now.is_in_table = number != 0
            case "s":
                now.level = self._levels.get(number or 0, 0)
            case "outlinelevel":
                now.level = _find_level(number or 0)

    def _end_paragraph(self) -> None:
        if self._now.is_note:
            self._layout.add(" ", self._now.level)
        elif not self._now.place:
            self._layout.end_paragraph(self._now.is_in_table)

    def _decode(self) -> None:
        """Decodes the bytes that came in a row, since a character may be two of them."""
        if not self._bytes:
            return
        content, self._bytes = bytes(self._bytes), bytearray()
        now, text = self._now, ""
        if self._is_raw:
            # The format is ASCII; programs that write other bytes mean UTF-8.
            self._is_raw = False
            with suppress(UnicodeDecodeError):
                text = content.decode("utf-8")
        charset = self._code_page if now.font is None else self._charsets.get(now.font, self._code_page)
        text = text or content.decode(charset, "replace")
        heading = _HEADING_STYLE.match(text)
        if heading and now.place == "stylesheet" and now.style is not None:
            self._levels[now.style] = min(int(heading[1]), _DEEPEST_HEADING)
        self._show(text)

    def _show(self, text: str) -> None:
        if not (self._now.place or self._now.is_hidden or self._now.is_deleted):
            self._layout.add(text, self._now.level)


def _find_level(outline: int) -> int:
    """Outlines count from 0, and 9 is the body of the text."""
    return outline + 1 if 0 <= outline < _DEEPEST_HEADING else 0


class Layout:
    """Takes text and the ends of paragraphs, cells and rows; `finish` returns the document."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._rows: list[list[str]] = []
        self._cells: list[str] = []
        self._cell: list[str] = []
        self._letters: list[str] = []
        self._level = 0
        self._merges: list[str] = []
        self._merge = ""

    def add(self, text: str, level: int = 0) -> None:
        """`level` is that of a heading, 0 for all other text."""
        self._letters.append(text)
        if text.strip():
            self._level = level

    def end_paragraph(self, is_in_table: bool) -> None:
        text, level = self._take_text(), self._level
        self._level = 0
        if is_in_table:
            self._cell.append(text)
            return
        self._end_table()
        item = _NUMBER.sub(r"\1. ", _BULLET.sub("- ", text))
        self._blocks.append(f"{'#' * level} {' '.join(text.split())}" if level and text else item)

    def take_table(self, word: str, is_in_table: bool) -> None:
        match word:
            case "cell":
                self._end_cell()
            case "row":
                self._end_row()
            case "trowd":
                if not is_in_table and any(self._letters):
                    self.end_paragraph(False)
                self._merges, self._merge = [], ""
            case "cellx":
                self._merges.append(self._merge)
                self._merge = ""
            # The cell whose edge comes next shows what the one on its left or above it shows.
            case "clmrg" | "clvmrg":
                self._merge = word

    def finish(self) -> str:
        # A file that was cut short ends inside a paragraph or a row.
        if any(self._letters) or self._cell:
            if self._cells or self._cell:
                self._end_cell()
            else:
                self.end_paragraph(False)
        self._end_table()
        return join_blocks(self._blocks)

    def _end_cell(self) -> None:
        self._cells.append(" ".join(filter(None, (*self._cell, self._take_text()))))
        self._cell = []

    def _end_row(self) -> None:
        for at, towards in enumerate(self._merges[: len(self._cells)]):
            if towards == "clmrg" and at:
                self._cells[at] = self._cells[at - 1]
            elif towards == "clvmrg" and self._rows and at < len(self._rows[-1]):
                self._cells[at] = self._rows[-1][at]
        self._rows.append(self._cells)
        self._cells = []

    def _end_table(self) -> None:
        if self._cells:
            self._end_row()
        if self._rows:
            self._blocks.append(table_to_text(self._rows))
            self._rows = []

    def _take_text(self) -> str:
        # Letters beyond 16 bits come as two halves.
        text = "".join(self._letters).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        self._letters = []
        return text.strip()


def tokenize(content: bytes) -> Iterator[re.Match[bytes]]:
    r"""Tokens with a group of word (and number), code, sign, brace or text; binary data after "\bin" is skipped."""
    at = 0
    while token := _TOKEN.match(content, at):
        at = token.end()
        if token["word"] == b"bin":
            at += max(int(token["number"] or 0), 0)
            continue
        yield token


def name_code_page(number: int) -> str:
    """The codec of a Windows code page; cp1252 for one that is unknown."""
    special = {65001: "utf-8", 10000: "mac_roman", 936: "gb18030", 1361: "johab"}
    codec = special.get(number, f"cp{number}")
    try:
        "".encode(codec)
    except LookupError:
        return "cp1252"
    return codec
