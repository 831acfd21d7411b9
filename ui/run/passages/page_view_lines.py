"""A passage and the text around it as lines of pieces, each kept, struck out, of the passage, or around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from crag_core.base.text.display import clean
from crag_core.base.types import StripVerdict

AROUND, PASSAGE, KEPT, STRUCK, GAP = "around", "passage", "kept", "struck", "gap"
_SAID = {AROUND: "", PASSAGE: "", KEPT: "kept", STRUCK: "struck out"}
_HEADING = re.compile(r"\s*#{1,6}\s+(?=\S)")
_RULE = re.compile(r"[|:\-\s]+")

Cut = tuple[int, int, str, StripVerdict | None]
"""From, to, what this stretch of the text is, and the verdict on it."""


def lines_of(before: str, passage: str, verdicts: Sequence[StripVerdict], after: str) -> list[dict[str, Any]]:
    """Headings without their marks, rules of tables left out; everything else word for word and in its place."""
    whole = f"{before}{passage}{after}"
    cuts = list(_cuts(len(before), len(passage), len(whole), verdicts))
    lines: list[dict[str, Any]] = []
    at = first = 0
    for line in whole.split("\n"):
        end = at + len(line)
        heading = _HEADING.match(line)
        if line.strip() and not _RULE.fullmatch(line):
            start = at + heading.end() if heading else at
            while cuts[first][1] <= start and first + 1 < len(cuts):
                first += 1
            pieces = list(_pieces(whole, start, end, cuts, first))
            lines.append({"heading": bool(heading), "apart": whole[:at].endswith("\n\n"), "pieces": pieces})
        at = end + 1
    return lines


def describe(verdict: StripVerdict) -> str:
    """For people with a mouse; what they need to know stands beside the sentence as well."""
    score = "not graded" if verdict.strip.score is None else f"score {verdict.strip.score:.2f}"
    reason = "" if verdict.reason in ("", "kept") else f": {clean(verdict.reason)}"
    return f"{'Kept' if verdict.kept else 'Struck out'}, {score}{reason}"


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


def _pieces(whole: str, start: int, end: int, cuts: Sequence[Cut], first: int) -> Iterator[dict[str, Any]]:
    for low, high, kind, verdict in cuts[first:]:
        if low >= end:
            return
        part = whole[max(low, start) : min(high, end)]
        if not part.strip():
            if part:
                yield {"kind": GAP, "text": " "}
            continue
        piece = {"kind": kind, "text": _spaced(part), "said": _SAID[kind]}
        if verdict is not None:
            ends = high <= end
            score = "" if verdict.strip.score is None else f"{verdict.strip.score:.2f}"
            piece |= {"told": describe(verdict), "score": score if ends else ""}
        yield piece


def _spaced(part: str) -> str:
    """`clean`, which trims; the gaps to the pieces beside it stay."""
    return (" " if part[0].isspace() else "") + clean(part) + (" " if part[-1].isspace() else "")
