"""The project's own trained retrieval evaluator: an *answering* and a *topical* score from one cross-encoder."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Self

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.base.protocols import Cancel
from crag_core.base.text.words import words
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import ANSWERING, Passage
from crag_core.evaluators.shared import coarse, named
from crag_core.evaluators.shared.model_files import FRAME, SETTINGS, read_file
from crag_core.evaluators.shared.named import as_read, is_of_another, named_in
from crag_core.evaluators.shared.pair_encoder import (
    PairReader,
    WordPieces,
    cut_windows,
    heading_of,
    open_reader,
    why_unread,
)
from crag_core.evaluators.shared.parts import MINILM, EvaluatorParts, less_sure
from crag_core.evaluators.shared.strip_places import chances, readable


class CrossEncoderEvaluator:
    """Grades by the model in `folder`, loaded at the first use; `grade` raises `EvaluatorUnavailable` or `Stopped`.

    A passage is read with the headings above it; a long one in windows, and each part is that of its best window.
    `trusts_cosines`: the cosines that a retriever recorded are of the embedding model that ships here,
    all-MiniLM-L6-v2, and save working them out again.
    """

    card = EvaluatorCard(
        name="cross-encoder",
        title="Trained evaluator",
        scale="expected relevance, 0 to 1: half for being about the question, half for holding the answer",
        lower=0.52,
        upper=0.83,
        strip_cutoff=0.05,
        calls_model=False,
        cost="no model call, about 20 ms a chunk",
    )
    scored_by: tuple[str, ...] = ("answering", "topical")
    """The parts whose mean is the score."""
    advice: str = " Choose the evaluator “Language model”, or “Heuristic” where there is none."
    """For texts that it cannot read, at the end of the cause."""

    def __init__(self, folder: Path, *, trusts_cosines: bool = False) -> None:
        self._folder = folder
        self._trusts_cosines = trusts_cosines
        # Read now: every grade is then made by the version that a cache keeps it under, whatever becomes of the files.
        self._settings = _read_settings(folder)
        self.card = replace(type(self).card, version=self._version())

    @classmethod
    def build(cls, parts: EvaluatorParts) -> Self:
        return cls(parts.trained, trusts_cosines=parts.embedder.name == MINILM)

    def _version(self) -> str:
        """Names what a grade is made with: another model has another version.

        Who worked out the cosine is left out: it moves a score by less than what a threshold can mean.
        """
        if isinstance(self._settings, EvaluatorUnavailable):
            return "absent"
        return hashlib.sha256(self._settings + f"{coarse.VERSION} {named.VERSION}".encode()).hexdigest()[:16]

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        if not passages:
            return ()
        started = time.perf_counter()
        reader, asked, refused = self._open(question)
        grades = (
            [Grade(passage.id, None, cause=refused) for passage in passages]
            if refused
            else self._judge(asked, passages, reader, cancel)
        )
        grades = coarse.grade_unread(question, passages, grades, self.scored_by, cancel)
        each = (time.perf_counter() - started) / len(passages)
        return tuple(replace(grade, seconds=each) for grade in grades)

    def score(
        self, question: str, chunks: Sequence[tuple[Passage, Sequence[Strip]]], cancel: Cancel
    ) -> tuple[tuple[Strip, ...], str]:
        """The chance that each strip holds the answer: that its chunk does, times that it stands in this one then.

        Both come from one reading of the chunk, the one that graded it where it was graded just before. Second, why
        some strips have no score; raises as `grade` does.
        """
        strips = tuple(strip for _, some in chunks for strip in some)
        if not strips:
            return (), ""
        reader, asked, refused = self._open(question)
        others = {strip.id for passage, some in chunks for strip in _of_others(question, passage, some)}
        asked_of = [(passage, [one for one in some if one.id not in others]) for passage, some in chunks]
        texts = [] if refused else [text for chunk in asked_of for text in readable(*chunk, reader)]
        grades = self._judge(asked, [text.passage for text in texts], reader, cancel)
        scored = {
            strip.id: replace(strip, score=chance * (grade.part(ANSWERING) or 0.0))
            for text, grade, some in zip(texts, grades, chances(texts, reader, asked, cancel), strict=True)
            for strip, chance in zip(text.strips, some, strict=True)
        }
        scored |= {strip.id: replace(strip, score=0.0) for strip in strips if strip.id in others and not refused}
        found = tuple(scored.get(strip.id, strip) for strip in strips)
        strips = coarse.score_unread(question, found, {passage.id: passage.text for passage, _ in chunks}, cancel)
        unread = (why_unread(reader.pieces(strip.text), "text") for strip in strips if strip.score is None)
        return strips, next((refused or why for why in unread), "")

    def _open(self, question: str) -> tuple[PairReader, WordPieces, str]:
        """The models, the question in pieces, and why it is not read; "": it is. Raises `EvaluatorUnavailable`."""
        if isinstance(self._settings, EvaluatorUnavailable):
            raise EvaluatorUnavailable(self._settings.message, hint=self._settings.hint)
        reader = open_reader(self._folder, self._settings)
        asked = reader.pieces(question)
        return reader, asked, self._why_unread(asked, "question") if words(asked.text) else "The question has no words."

    def _judge(self, asked: WordPieces, passages: Sequence[Passage], reader: PairReader, cancel: Cancel) -> list[Grade]:
        read = [as_read(asked.text, heading_of(passage), passage.text) for passage in passages]
        texts = [reader.pieces(text) for _, text in read]
        refused = [self._why_unread(text, "text") for text in texts]
        scores: dict[int, Sequence[tuple[float, float]]] = {}
        for question in dict.fromkeys(question for question, _ in read):
            some = [at for at, why in enumerate(refused) if not why and read[at][0] == question]
            found = self._scores(reader.pieces(question), [(passages[at], texts[at]) for at in some], reader, cancel)
            scores |= zip(some, found, strict=True)
        count, most = len(asked.ids), reader.settings.question_tokens
        cut = f", question cut at {most} of its {count} tokens" if count > most else ""
        return [
            Grade(passage.id, None, cause=why) if why else self._grade(asked.text, passage, scores[at], cut)
            for at, (passage, why) in enumerate(zip(passages, refused, strict=True))
        ]

    def _scores(
        self, asked: WordPieces, texts: Sequence[tuple[Passage, WordPieces]], reader: PairReader, cancel: Cancel
    ) -> Iterator[list[tuple[float, float]]]:
        """(answering, topical) of each window of each text."""
        settings = reader.settings
        question = asked.ids[: settings.question_tokens]
        room = settings.tokens - FRAME - len(question)
        windows = [cut_windows(text, room, settings.overlap) for _, text in texts]
        readings = iter(reader.read(question, [window.ids for some in windows for window in some], cancel))
        known = [passage.score("cosine") if self._trusts_cosines else None for passage, _ in texts]
        unknown = [window.ids for some, one in zip(windows, known, strict=True) if one is None for window in some]
        cosines = iter(reader.cosines(question, unknown, cancel))
        for some, one in zip(windows, known, strict=True):
            seen = [(next(readings), next(cosines) if one is None else one) for _ in some]
            yield [settings.signals.scores(read.answering, read.topical, cosine) for read, cosine in seen]

    def _why_unread(self, pieces: WordPieces, what: str) -> str:
        why = why_unread(pieces, what)
        return why and why + self.advice

    def _grade(self, question: str, passage: Passage, scores: Sequence[tuple[float, float]], cut: str) -> Grade:
        answering, topical = (max(found) for found in zip(*scores, strict=True)) if scores else (0.0, 0.0)
        parts = (("answering", answering), ("topical", topical))
        reason = f"answering {answering:.2f}, topical {topical:.2f}" if scores else "no text"
        reason += f", best of {len(scores)} windows" if len(scores) > 1 else ""
        score = fmean(value for name, value in parts if name in self.scored_by)
        if not scores:
            return Grade(passage.id, score, reason, parts)
        return Grade(passage.id, score, reason + cut, parts, coarse=False, caution=less_sure(question, passage.text))


def _of_others(question: str, passage: Passage, strips: Sequence[Strip]) -> Iterator[Strip]:
    """Rows that name another code than the question does, in a passage that holds that one."""
    codes = named_in(question, passage.text)
    return (strip for strip in strips if codes and is_of_another(strip.text, codes))


class CrossEncoderStripEvaluator(CrossEncoderEvaluator):
    """For strips: a text is judged by whether it holds the answer, not by what it is about."""

    scored_by = ("answering",)
    advice = ""  # nobody chooses who scores strips


def _read_settings(folder: Path) -> bytes | EvaluatorUnavailable:
    try:
        return read_file(folder, SETTINGS)
    except EvaluatorUnavailable as error:
        return error
