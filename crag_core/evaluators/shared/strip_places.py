"""Scores the strips of a chunk from one reading of it: by the logits of the places that each strip holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from crag_core.base.protocols import Cancel
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import Passage
from crag_core.evaluators.shared.model_files import FRAME
from crag_core.evaluators.shared.pair_encoder import (
    PairReader,
    WordPieces,
    cut_windows,
    heading_of,
    log_sum_exp,
    why_unread,
)

_NOWHERE = -30.0


@dataclass(frozen=True)
class StripText:
    """A text to read, the strips that stand in it, and where it begins in the passage that these are of."""

    passage: Passage
    strips: tuple[Strip, ...]
    start: int = 0


def readable(passage: Passage, strips: Sequence[Strip], reader: PairReader) -> Iterator[StripText]:
    """The chunk with those of its strips that the model can read; each by itself where it cannot read the chunk."""
    legible = [strip for strip in strips if not why_unread(reader.pieces(strip.text), "text")]
    if legible and not why_unread(reader.pieces(passage.text), "text"):
        yield StripText(passage, tuple(legible))
    else:
        yield from (StripText(replace(passage, text=one.text, scores=()), (one,), one.start) for one in legible)


def chances(texts: Sequence[StripText], reader: PairReader, asked: WordPieces, cancel: Cancel) -> Iterator[list[float]]:
    """Of each text the chance that the answer stands in each of its strips, given that the text holds it, in 0..1.

    Raises `Stopped`, `EvaluatorUnavailable`.
    """
    settings = reader.settings
    question = asked.ids[: settings.question_tokens]
    room = settings.tokens - FRAME - len(question)
    headings = [heading_of(text.passage) for text in texts]
    pieces = [reader.pieces(heading + text.passage.text) for heading, text in zip(headings, texts, strict=True)]
    windows = [cut_windows(some, room, settings.overlap) for some in pieces]
    readings = iter(reader.read(question, [window.ids for some in windows for window in some], cancel))
    for text, heading, some, cut in zip(texts, headings, pieces, windows, strict=True):
        odds = [_NOWHERE] * len(some.ids)
        for window in cut:
            for at, found in enumerate(next(readings).places, start=window.start):
                odds[at] = max(odds[at], found)
        held = [_within(some, strip, text.start - len(heading)) for strip in text.strips]
        yield settings.sentence.scores([log_sum_exp([odds[at] for at in places] or [_NOWHERE]) for places in held])


def _within(pieces: WordPieces, strip: Strip, start: int) -> list[int]:
    first, last = strip.start - start, strip.end - start
    return [at for at, (a, b) in enumerate(pieces.offsets) if a < last and b > first]
