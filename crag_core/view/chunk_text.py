"""A passage and the text around it as lines of pieces, each kept, struck out, of the passage, or around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crag_core.base.text.display import JOINERS, sentence
from crag_core.base.types import StripVerdict
from crag_core.view.sentences import describe_verdict, score_of

AROUND, PASSAGE, KEPT, STRUCK, GAP = "around", "passage", "kept", "struck", "gap"
_SAID = {KEPT: "kept", STRUCK: "struck out"}
_HEADING = re.compile(r"\s*#{1,6}\s+(?=\S)")
_RULE = re.compile(r"[|:\-\s]+")

Cut = tuple[int, int, str, StripVerdict | None]
"""From, to, what this stretch of the text is, and the verdict on it."""


@dataclass(frozen=True)
class Piece:
    """A sentence, or what of it stands on this line: with its `index` where it begins, its `score` where it ends."""

    kind: str
    text: str
    said: str = ""
    told: str = ""
    score: str = ""
    index: int | None = None


@dataclass(frozen=True)
class TextLine:
    """`apart`: an empty line is above it."""

    heading: bool
    apart: bool
    pieces: tuple[Piece, ...]


def text_lines(
    before: str, passage: str, verdicts: Sequence[StripVerdict], after: str, signs: Mapping[str, str] | None = None
) -> tuple[TextLine, ...]:
    """Headings without their marks, rules of tables left out; everything else word for word and in its place.

    `signs` stand behind the scores, by the reason of a verdict.
    """
    whole = f"{before}{passage}{after}"
    cuts = list(_cuts(len(before), len(passage), len(whole), verdicts))
    lines = []
    at = first = 0
    for line in whole.split("\n"):
        end = at + len(line)
        heading = _HEADING.match(line)
        if line.strip() and not _RULE.fullmatch(line):
            start = at + heading.end() if heading else at
            while cuts[first][1] <= start and first + 1 < len(cuts):
                first += 1
            pieces = tuple(_pieces(whole, start, end, cuts[first:], signs or {}))
            lines.append(TextLine(bool(heading), whole[:at].endswith("\n\n"), pieces))
        at = end + 1
    return tuple(lines)


def _cuts(start: int, size: int, end: int, verdicts: Sequence[StripVerdict]) -> Iterator[Cut]:
    """Stretches that cover the whole text, one after the other."""
    yield 0, start, AROUND, None
    at, last = start, start + size
    for verdict in verdicts:
        begin, stop = (min(start + offset, last) for offset in (verdict.strip.start, verdict.strip.end))
        if begin < at:
            continue
        yield at, begin, PASSAGE, None
        yield begin, stop, KEPT if verdict.kept else STRUCK, verdict
        at = stop
    yield at, last, PASSAGE, None
    yield last, end, AROUND, None


def _pieces(whole: str, start: int, end: int, cuts: Sequence[Cut], signs: Mapping[str, str]) -> Iterator[Piece]:
    for low, high, kind, verdict in cuts:
        if low >= end:
            return
        part = whole[max(low, start) : min(high, end)]
        if not part.strip():
            if part:
                yield Piece(GAP, " ")
        elif verdict is None:
            yield Piece(kind, _seen(part))
        else:
            score = score_of(verdict, signs.get(verdict.reason, "")) if high <= end else ""
            is_first = not whole[low : max(low, start)].strip("#|:- \t\n")
            index = verdict.strip.index if is_first else None
            yield Piece(kind, _seen(part), _SAID[kind], sentence(describe_verdict(verdict)), score, index)


def _seen(part: str) -> str:
    """`clean` without its trimming: indents, and the gaps to the pieces beside it, stay."""
    shown = (sign for sign in part if sign.isprintable() or sign.isspace() or sign in JOINERS)
    return "".join(" " if sign.isspace() else sign for sign in shown)
