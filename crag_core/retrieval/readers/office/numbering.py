"""The numbers of paragraphs as Word shows them: "1.2", "(a)", "Article 3"."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from crag_core.retrieval.readers.office.markup import W, remove, value_of
from crag_core.retrieval.readers.packages import Package

_ROMAN = {"m": 1000, "cm": 900, "d": 500, "cd": 400, "c": 100, "xc": 90, "l": 50, "xl": 40, "x": 10, "ix": 9}
_ROMAN |= {"v": 5, "iv": 4, "i": 1}
# Styles that are based on each other; no real ones are more.
_MOST_STYLES = 20


@dataclass
class _List:
    """A list of Word: what it says of each level; the last number of each, which lists of one kind share; the numbers
    before the first where it begins anew."""

    levels: dict[int, Any]
    counts: dict[int, int]
    anew: dict[int, int]

    def next_number(self, level: int) -> str:
        self.counts |= self.anew
        self.anew = {}
        for deeper in [at for at in self.counts if at > level]:
            del self.counts[deeper]
        self.counts[level] = self.counts.get(level, self._start(level) - 1) + 1
        is_legal = self.levels[level].find(f"{W}isLgl") is not None

        def show(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            number = self.counts.setdefault(at, self._start(at))
            return show_number(number, "" if is_legal else value_of(self.levels.get(at), "numFmt"))

        return re.sub(r"%([1-9])", show, value_of(self.levels[level], "lvlText")).strip()

    def _start(self, level: int) -> int:
        return int(value_of(self.levels.get(level), "start") or 1)


class Numbers:
    """The lists that paragraphs and styles belong to; `styles` are the elements by their ids."""

    def __init__(self, package: Package, styles: dict[str, Any]) -> None:
        self._styles = styles
        self._lists: dict[str, _List] = {}
        for root in package.roots("word/numbering.xml"):
            kinds: dict[str, dict[int, Any]] = {
                one.get(f"{W}abstractNumId"): {_level(of): of for of in one.iterchildren(f"{W}lvl")}
                for one in root.iterchildren(f"{W}abstractNum")
            }
            counts = defaultdict[str, dict[int, int]](dict)
            for one in root.iterchildren(f"{W}num"):
                kind, starts = value_of(one, "abstractNumId"), one.iterfind(f"{W}lvlOverride[{W}startOverride]")
                anew = {_level(of): int(value_of(of, "startOverride")) - 1 for of in starts}
                self._lists[one.get(f"{W}numId")] = _List(kinds.get(kind, {}), counts[kind], anew)

    def next(self, looks: Any) -> str:
        """The number of a paragraph, given its properties; "": none, or a bullet."""
        marks, style = [looks.find(f"{W}numPr")], value_of(looks, "pStyle")
        # Its own list and level there, or those of its style, or of one that this is based on.
        while style in self._styles and len(marks) < _MOST_STYLES:
            marks.append(self._styles[style].find(f"{W}pPr/{W}numPr"))
            style = value_of(self._styles[style], "basedOn")
        name, level = (next(filter(None, (value_of(mark, tag) for mark in marks)), "") for tag in ("numId", "ilvl"))
        return self._lists[name].next_number(int(level or 0)) if self._is_counted(name, level) else ""

    def _is_counted(self, name: str, level: str) -> bool:
        own = self._lists[name].levels.get(int(level or 0)) if name in self._lists else None
        return value_of(own, "numFmt") not in ("bullet", "none", "")

    def take_from_styles(self) -> None:
        """The library counts as well: what is written out here leaves the styles."""
        for style in self._styles.values():
            for mark in style.findall(f"{W}pPr/{W}numPr"):
                if self._is_counted(value_of(mark, "numId"), value_of(mark, "ilvl")):
                    remove(mark)


def _level(element: Any) -> int:
    return int(element.get(f"{W}ilvl", "0"))


def show_number(number: int, kind: str) -> str:
    """As a list of Word counts: "lowerRoman", "upperLetter" and the like; others in figures."""
    shown = f"{number:02}" if kind == "decimalZero" else str(number)
    if not 0 < number < 10_000:
        return shown
    if kind.endswith("Letter"):
        shown = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif kind.endswith("Roman"):
        shown = ""
        for letters, value in _ROMAN.items():
            shown, number = shown + letters * (number // value), number % value
    return shown.upper() if kind.startswith("upper") else shown
