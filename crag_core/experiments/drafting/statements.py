"""The plain sentences of a passage, without headings, list marks, table rows and code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crag_core.base.text.sentences import split

_HEADINGS = re.compile(r"(?:[ \t]{0,3}#{1,6}[ \t][^\n]*\n+)+")
_NUMBERED_HEADING = re.compile(r"\d{1,2}\.[ \t]+[^\n.:;,]{2,40}\n[ \t]*(?=[A-Z])")
_MARK = re.compile(r"(?:[-*+•‣◦–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?:\[[ xX]\]\s+)?")
_TABLE_OR_CODE = re.compile(r"^\s*(?:\||```|~~~|#)", re.MULTILINE)
_NEW_LINE = re.compile(r"([^\n]*)\n\s*(\S)")
_EDGE = r"[^\W\u0e00-\u0fff\u3040-\u9fff]"
"""A letter or digit of a script that parts its words by white space."""

_WRAPPED = 45
"""Characters: a shorter line before one that begins with a capital is a title rather than the start of a sentence."""

_END = re.compile(r"""[.。．।۔॥։።]["'”’“»«)\]」』）]*$""")


@dataclass(frozen=True)
class Piece:
    """`text` stands in its passage word for word; `is_plain`: it reads as one whole sentence of running text."""

    text: str
    is_plain: bool


def pieces(passage: str) -> list[Piece]:
    """Sentences, list items and rows in order; headings stand apart from what they announce."""
    found: list[Piece] = []
    for start, end in split(passage):
        text = passage[start:end]
        for heading in (_HEADINGS.match(text), _NUMBERED_HEADING.match(text)):
            if heading and (rest := text[heading.end() :].strip()):
                found.append(Piece(heading.group().strip(), False))
                text = rest
        mark = _MARK.match(text)
        text = text[mark.end() :] if mark else text
        if text:
            found.append(Piece(text, _is_plain(text)))
    return found


def standing(text: str) -> re.Pattern[str]:
    """Finds `text` as whole words, whatever its case and wherever its lines were broken; expects some words."""
    flexible = r"\s+".join(re.escape(word) for word in text.split())
    return re.compile(f"(?<!{_EDGE}){flexible}(?!{_EDGE})", re.IGNORECASE)


def _is_plain(text: str) -> bool:
    if _TABLE_OR_CODE.search(text) or not _END.search(text):
        return False
    breaks = _NEW_LINE.finditer(text)
    return all(len(line.strip()) >= _WRAPPED or not after.isupper() for line, after in (b.groups() for b in breaks))
