"""What holds at a place of a Rich Text file: the properties of its group, and the fonts and styles of the document."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crag_core.retrieval.readers.rtf.tokens import CHARSETS, name_code_page

_HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)
_DEEPEST_HEADING = 6


@dataclass
class Group:
    """What holds until the closing brace. `place` is the destination that is left out, "" where text is shown.

    `level` is that of a heading, 0 for other text; `replaced_by` counts the letters after a Unicode one that stand in
    for it in old programs.
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

    @property
    def is_shown(self) -> bool:
        return not (self.place or self.is_hidden or self.is_deleted)


class Definitions:
    """Code page, fonts and headings of one document."""

    def __init__(self) -> None:
        self._code_page = "cp1252"
        self._default_font: int | None = None
        self._charsets: dict[int, str] = {}
        self._levels: dict[int, int] = {}

    def take_definition(self, word: str, number: int, group: Group) -> None:
        """A word inside the tables of fonts and styles."""
        if word == "f":
            group.font = number
        elif word == "fcharset" and group.place == "fonttbl" and group.font is not None:
            if number in CHARSETS:
                self._charsets[group.font] = CHARSETS[number]
        elif word == "s":
            group.style = number
        elif word == "outlinelevel" and group.place == "stylesheet" and group.style is not None:
            self._levels[group.style] = _find_level(number)

    def take_style_name(self, name: str, group: Group) -> None:
        found = _HEADING_STYLE.match(name)
        if found and group.place == "stylesheet" and group.style is not None:
            self._levels[group.style] = min(int(found[1]), _DEEPEST_HEADING)

    def take_property(self, word: str, number: int | None, group: Group) -> None:
        """A word in the text that sets how what follows is read."""
        match word:
            case "ansicpg":
                self._code_page = name_code_page(number or 0)
            case "mac" | "pc" | "pca":
                self._code_page = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
            case "deff":
                self._default_font = group.font = number
            case "f":
                group.font = number
            case "uc":
                group.replaced_by = max(number or 0, 0)
            case "v":
                group.is_hidden = number != 0
            case "deleted":
                group.is_deleted = number != 0
            case "plain":
                group.is_hidden = group.is_deleted = False
                group.font = self._default_font
            case "pard":
                group.level, group.is_in_table = 0, False
            case "intbl":
                group.is_in_table = number != 0
            case "s":
                group.level = self._levels.get(number or 0, 0)
            case "outlinelevel":
                group.level = _find_level(number or 0)

    def decode(self, content: bytes, font: int | None) -> str:
        """In the code page of the font, or of the document where the font has none."""
        codec = self._code_page if font is None else self._charsets.get(font, self._code_page)
        return content.decode(codec, "replace")


def _find_level(outline: int) -> int:
    """Outlines count from 0, and 9 is the body of the text."""
    return outline + 1 if 0 <= outline < _DEEPEST_HEADING else 0
