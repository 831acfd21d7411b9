"""The whole text of a passage in a report, with its sentences in place: kept, or struck out and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crag_core.base.types import StripVerdict

Reasons = dict[str, tuple[str, int]]
"""Each reason to strike a sentence out, with the letter that stands for it and how many sentences it struck."""

_HEADING = re.compile(r"#{1,6}[ \t]+(?=\S)")
_OWN_SCORE = re.compile(r"^score \d+\.\d+ is")


@dataclass(frozen=True)
class Piece:
    """A part of a passage's text, and the space behind it.

    `state` is "kept", "struck", or "" for what was not decided on. `runs` are its words, each with whether they are a
    heading.
    """

    runs: tuple[tuple[str, bool], ...]
    space: str
    state: str = ""
    score: str = ""
    reason: str = ""
    mark: str = ""
    anchor: str = ""

    @property
    def ends_paragraph(self) -> bool:
        return self.space.count("\n") > 1


def why_struck(verdicts: Sequence[StripVerdict]) -> Reasons:
    """Why sentences were struck out, each with a letter and how many; a sentence's own score stands beside it."""
    found: dict[str, tuple[str, int]] = {}
    for verdict in verdicts:
        if not verdict.kept:
            reason = _shared(verdict.reason)
            mark, count = found.get(reason, (_letter(len(found)), 0))
            found[reason] = (mark, count + 1)
    return found


def _shared(reason: str) -> str:
    return _OWN_SCORE.sub("score is", reason)


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else str(index)


def pieces_of(text: str, verdicts: Sequence[StripVerdict], reasons: Reasons, anchor: str) -> tuple[Piece, ...]:
    return tuple(_pieces(text, verdicts, reasons, anchor))


def _pieces(text: str, verdicts: Sequence[StripVerdict], reasons: Reasons, anchor: str) -> Iterator[Piece]:
    """The whole text once, in order; strips of a record from outside may overlap."""
    at = 0
    for verdict in sorted(verdicts, key=lambda verdict: verdict.strip.start):
        strip = verdict.strip
        start, end = max(strip.start, at), min(strip.end, len(text))
        if start >= end:
            continue
        if start > at:
            yield Piece(*_runs(text[at:start]))
        score = "" if strip.score is None else f"{strip.score:.2f}"
        mark = "" if verdict.kept or len(reasons) < 2 else reasons[_shared(verdict.reason)][0]
        state = "kept" if verdict.kept else "struck"
        yield Piece(*_runs(text[start:end]), state, score, verdict.reason, mark, f"{anchor}-{strip.index}")
        at = end
    if at < len(text):
        yield Piece(*_runs(text[at:]))


def _runs(text: str) -> tuple[tuple[tuple[str, bool], ...], str]:
    """The words, Markdown's headings without their marks and the empty lines below them; and the space at the end."""
    body = text.rstrip()
    runs: list[tuple[str, bool]] = []
    for line in body.splitlines(keepends=True):
        marks = _HEADING.match(line)
        if marks:
            runs.append((f"{line[marks.end() :].strip()}\n", True))
        elif line.strip() or not (runs and runs[-1][1]):
            runs.append((line, False))
    if runs:
        runs[-1] = (runs[-1][0].rstrip(), runs[-1][1])
    return tuple(runs), text[len(body) :]
