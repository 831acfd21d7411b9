"""Rich Text Format (.rtf): headings, paragraphs, lists and tables, without pictures, hidden and deleted text.

Our own, since packages that convert RTF to plain text break emoji, show hidden and deleted text, drop footnotes, and
lose the headers of tables.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.rtf.layout import Layout
from crag_core.retrieval.readers.rtf.tokens import CHARSETS, LEFT_OUT, SHOWN_IN, SIGNS, WORDS, name_code_page, tokenize
from crag_core.retrieval.readers.shared.markdown_text import normalise_text

_DEEPEST = 1_000
_HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)
_DEEPEST_HEADING = 6


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
