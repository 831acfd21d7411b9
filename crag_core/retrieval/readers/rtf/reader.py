"""Rich Text Format (.rtf): headings, paragraphs, lists and tables, without pictures, hidden and deleted text.

Our own, since packages that turn it into plain text lose some of it: halves of emoji stay apart, hidden and deleted
text is shown, footnotes are dropped, and the cells of a table lose their header.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.rtf.layout import Layout
from crag_core.retrieval.readers.rtf.state import Definitions, Group
from crag_core.retrieval.readers.rtf.tokens import LEFT_OUT, SHOWN_IN, SIGNS, WORDS, tokenize
from crag_core.retrieval.readers.shared.markdown_text import normalise_text

_DEEPEST = 1_000


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


class _Document:
    def __init__(self, name: str) -> None:
        self._name = name
        self._layout = Layout()
        self._definitions = Definitions()
        self._outer: list[Group] = []
        self._now = Group()
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
            self._definitions.take_definition(word, number or 0, now)
        elif word == "u" and number is not None:
            self._show(chr(number % 0x10000))
            self._to_skip = now.replaced_by
        elif word in WORDS:
            self._show(WORDS[word])
        elif word in ("par", "page", "sect", "column"):
            self._end_paragraph()
        elif not self._layout.take_table(word, now.is_in_table):
            self._definitions.take_property(word, number, now)

    def finish(self) -> str:
        self._decode()
        return self._layout.finish()

    def _end_paragraph(self) -> None:
        if self._now.is_note:
            self._layout.add(" ", self._now.level)
        elif not self._now.place:
            self._layout.end_paragraph(self._now.is_in_table)

    def _decode(self) -> None:
        """Bytes wait until something else comes, since a letter may be two of them."""
        if not self._bytes:
            return
        content, self._bytes = bytes(self._bytes), bytearray()
        text = ""
        if self._is_raw:
            # The format is ASCII; programs that write other letters as they are write UTF-8 these days.
            self._is_raw = False
            with suppress(UnicodeDecodeError):
                text = content.decode("utf-8")
        text = text or self._definitions.decode(content, self._now.font)
        self._definitions.take_style_name(text, self._now)
        self._show(text)

    def _show(self, text: str) -> None:
        if self._now.is_shown:
            self._layout.add(text, self._now.level)
