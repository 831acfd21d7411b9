"""Coarse grades of what the trained evaluator cannot read: from the cosine of a multilingual embedding.

They tell what is on the subject from what is not, and an answer from what is near it less well than the trained
evaluator does. docs/decisions/0027-coarse-grades.md has the figures; `python -m training.coarse` in a checkout of
commit fdf17a3d made the numbers and the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean

from crag_core.base.errors import EvaluatorUnavailable, Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.text.words import script_of, words
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.evaluators.shared.model_files import chance
from crag_core.evaluators.shared.multilingual import QUESTION, SHA256, TEXT, open_multilingual
from crag_core.evaluators.shared.pair_encoder import cut_windows

MOST_WINDOWS = 4
"""Of a text, each of about 500 pieces; what follows is left out, since a window takes a third of a second."""
_OVERLAP = 64


@dataclass(frozen=True)
class Curve:
    """Log-odds from a cosine: 0 at `middle`."""

    middle: float
    slope: float

    def odds(self, cosine: float) -> float:
        return self.slope * (cosine - self.middle)


ON_SUBJECT = Curve(middle=0.8071, slope=71.6)
ANSWERS = Curve(middle=0.8566, slope=38.4)
"""Given that it is on the subject."""
BEST_SENTENCE = Curve(middle=0.8541, slope=13.0)
"""Of the best sentence of a chunk: does it hold the answer?"""
BEHIND = 64.4
"""The log-odds that another sentence loses for each 1 by which its cosine lies below that of the best."""

CHINESE, JAPANESE, BETWEEN_SCRIPTS = 0.0442, 0.0141, -0.0607
"""By how much cosines lie higher there than within the other scripts, for which the curves hold."""

VERSION = f"2 {SHA256} {ON_SUBJECT} {ANSWERS} {BEST_SENTENCE} {BEHIND} {CHINESE} {JAPANESE} {BETWEEN_SCRIPTS}"
"""Of what a coarse grade is made with, and how; 2: sentences by the chance that their chunk holds the answer."""

CAUTION = "coarse grade by a multilingual embedding"
_KANA = {"HIRAGANA", "KATAKANA"}


def level(question: str, text: str) -> float:
    """What to take from the cosine of both, so that the curves hold for it."""
    asked, main = _scripts(question), script_of(text)
    east_asian = {"CJK", *_KANA} if main in {"CJK", *_KANA} else set()
    if asked and main and not asked & {main, *east_asian}:
        return BETWEEN_SCRIPTS
    if east_asian:
        return JAPANESE if _scripts(text) & _KANA else CHINESE
    return 0.0


def _scripts(text: str) -> set[str]:
    return {script_of(sign) for sign in set(text)} - {""}


def judge(cosine: float) -> tuple[float, float]:
    """Probabilities of answering and topical, from a cosine less its `level`."""
    topical = chance(ON_SUBJECT.odds(cosine))
    return topical * chance(ANSWERS.odds(cosine)), topical


def judge_sentences(cosines: Sequence[float]) -> list[float]:
    """The probability of each sentence of a chunk that it holds the answer, from cosines less their `level`."""
    best = max(cosines, default=0.0)
    return [chance(BEST_SENTENCE.odds(best) - BEHIND * (best - cosine)) for cosine in cosines]


# --- grades ---------------------------------------------------------------------------------------------------------


def grade_unread(
    question: str, passages: Sequence[Passage], grades: Sequence[Grade], scored_by: Sequence[str], cancel: Cancel
) -> list[Grade]:
    """Coarse grades for the passages without a score; where there can be none, the cause says why as well.

    `scored_by` names the parts whose mean is the score. Raises `Stopped`.
    """
    if not words(question) or all(grade.score is not None for grade in grades):
        return list(grades)
    try:
        asked = EmbeddedQuestion(question)
    except EvaluatorUnavailable as error:
        why = f" {error.message} {error.hint}".rstrip()
        return [replace(grade, cause=grade.cause + why) if grade.score is None else grade for grade in grades]
    return [
        _grade(grade, asked, passage.text, scored_by, cancel) if grade.score is None else grade
        for grade, passage in zip(grades, passages, strict=True)
    ]


def _grade(unread: Grade, asked: EmbeddedQuestion, text: str, scored_by: Sequence[str], cancel: Cancel) -> Grade:
    seen = asked.compare(text, cancel)
    if seen is None:
        return unread
    answering, topical = judge(seen.cosine - level(asked.question, text)) if seen.is_text else (0.0, 0.0)
    parts = ((ANSWERING, answering), (TOPICAL, topical))
    found = replace(unread, score=fmean(value for name, value in parts if name in scored_by), parts=parts, cause="")
    if not seen.is_text:
        return replace(found, reason="no text")
    reason = f"{CAUTION}: similarity {seen.cosine:.2f}, answering {answering:.2f}, topical {topical:.2f}{seen.cut}"
    return replace(found, reason=reason, coarse=True, caution=CAUTION)


def score_unread(question: str, strips: Sequence[Strip], texts: Mapping[str, str], cancel: Cancel) -> tuple[Strip, ...]:
    """The strips, coarsely scored where none of their chunk has a score; as they are where there can be no score.

    A score is the chance that the chunk holds the answer, times that it stands in this strip then. Strips of a chunk
    stand one after another; `texts` are those of the chunks by id. Raises `Stopped`.
    """
    chunks = [list(some) for _, some in groupby(strips, key=lambda strip: strip.passage_id)]
    unread = [chunk for chunk in chunks if all(strip.score is None for strip in chunk)]
    if not words(question) or not unread:
        return tuple(strips)
    try:
        asked = EmbeddedQuestion(question)
    except EvaluatorUnavailable:
        return tuple(strips)
    scores = {id: score for chunk in unread for id, score in _score(chunk, texts[chunk[0].passage_id], asked, cancel)}
    return tuple(replace(strip, score=scores.get(strip.id, strip.score)) for strip in strips)


def _score(chunk: Sequence[Strip], text: str, asked: EmbeddedQuestion, cancel: Cancel) -> Iterable[tuple[str, float]]:
    """The id of each sentence that can be compared, with its score; none where the chunk cannot be."""
    whole = asked.compare(text, cancel)
    if whole is None:
        return ()
    holds, _ = judge(whole.cosine - level(asked.question, text)) if whole.is_text else (0.0, 0.0)
    seen = [(strip, found) for strip in chunk if (found := asked.compare(strip.text, cancel)) and found.is_text]
    scores = judge_sentences([found.cosine - level(asked.question, strip.text) for strip, found in seen])
    return zip([strip.id for strip, _ in seen], (holds * score for score in scores), strict=True)


# --- cosines --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Similarity:
    cosine: float
    is_text: bool
    cut: str = ""


class EmbeddedQuestion:
    """A question to compare texts with; constructing it raises `EvaluatorUnavailable`."""

    def __init__(self, question: str) -> None:
        self.question = question
        self._reader = open_multilingual()
        pieces = self._reader.pieces(question)
        if not self._reader.knows(pieces):
            raise EvaluatorUnavailable("The multilingual embedding does not know most signs of this question.")
        read, count = pieces.ids[: self._reader.room], len(pieces.ids)
        self._cut = f", question cut at {len(read)} of its {count} tokens" if len(read) < count else ""
        self._vector = self._reader.embed(QUESTION, read)

    def compare(self, text: str, cancel: Cancel) -> Similarity | None:
        pieces = self._reader.pieces(text)
        if not self._reader.knows(pieces):
            return None
        windows = cut_windows(pieces, self._reader.room, _OVERLAP)
        cosines = []
        for window in windows[:MOST_WINDOWS]:
            if cancel.is_set():
                raise Stopped()
            cosines.append(float(self._reader.embed(TEXT, window.ids) @ self._vector))
        cut = f", best of the first {MOST_WINDOWS} of {len(windows)} windows" if len(windows) > MOST_WINDOWS else ""
        return Similarity(max(cosines, default=0.0), bool(cosines), cut + self._cut)
