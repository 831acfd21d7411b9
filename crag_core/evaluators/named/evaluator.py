"""An evaluator that somebody else trained, by name, with the calibration that it got here."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from crag_core.base.protocols import Cancel
from crag_core.base.text.words import words
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import Passage
from crag_core.evaluators.named.files import ModelFiles, Tell, find_files, quiet
from crag_core.evaluators.named.find import INTERFACES, interface_of, open_reader
from crag_core.evaluators.named.names import ModelName, uncalibrated_card
from crag_core.evaluators.named.pruner import keep_above
from crag_core.evaluators.named.reader import Reader, Reading
from crag_core.evaluators.shared.pair_encoder import heading_of

LOGIT = "logit"
"""The part of a grade that holds what the model said, before any calibration."""
VERSION = "1"
"""Of how these models are read here: another one makes other logits."""


@dataclass(frozen=True)
class Calibrated:
    """What a calibration gives: the chance by the logit, and thresholds of it. `version` tells calibrations apart."""

    revision: str
    interface: str
    probability: Callable[[float], float]
    lower: float
    upper: float
    strip_cutoff: float
    version: str
    cost: str = "no LLM call"


class NamedEvaluator:
    """Grades by the model `name`; `made` None: not calibrated, the score is the logistic function of the logit.

    It is loaded at the first use, its hub files downloaded where they are not there. `grade` and `score` raise
    `EvaluatorUnavailable` or `Stopped`.
    """

    def __init__(self, name: ModelName, made: Calibrated | None = None, tell: Tell = quiet) -> None:
        self.name, self._made, self._tell = name, made, tell

    @cached_property
    def files(self) -> ModelFiles:
        """Of the revision that was calibrated; of the newest, where none was."""
        return find_files(self.name, self._tell, self._made.revision if self._made else "")

    @property
    def folder_now(self) -> str:
        """The digest of the folder as it is; raises `EvaluatorUnavailable`."""
        return find_files(self.name).revision

    @property
    def interface(self) -> str:
        return self._made.interface if self._made else interface_of(self.files, self.name.told)

    @cached_property
    def card(self) -> EvaluatorCard:
        """Without a calibration it looks at the files, which may have to be downloaded."""
        card, made = uncalibrated_card(str(self.name)), self._made
        of = INTERFACES[self.interface].scale
        if made is None:
            version = f"{self.interface} {self.files.revision} raw {VERSION}"
            return replace(card, scale=f"logistic function of {of}, not calibrated", version=version)
        return replace(
            card,
            scale=f"chance that a question is answerable by a chunk, from {of} by its calibration, 0 to 1",
            lower=made.lower,
            upper=made.upper,
            strip_cutoff=made.strip_cutoff,
            cost=made.cost,
            version=f"{made.interface} {made.revision} calibrated {made.version} {VERSION}",
        )

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        if not passages:
            return ()
        if not words(question):
            return tuple(Grade(passage.id, None, cause="The question has no words.") for passage in passages)
        started = time.perf_counter()
        readings = self._reader.read(question, [heading_of(one) + one.text for one in passages], cancel)
        each = (time.perf_counter() - started) / len(passages)
        return tuple(
            replace(self._grade(passage, reading), seconds=each)
            for passage, reading in zip(passages, readings, strict=True)
        )

    @property
    def _reader(self) -> Reader:
        return open_reader(self.files, self.interface)

    def _grade(self, passage: Passage, found: Reading) -> Grade:
        if not passage.text.strip():
            return Grade(passage.id, 0.0, "no text")
        if not math.isfinite(found.logit):
            return Grade(passage.id, None, cause=f"The model gave {found.logit}, expected a finite number.")
        score = self._made.probability(found.logit) if self._made else _logistic(found.logit)
        windows = f"best of {found.windows} windows" if found.windows > 1 else ""
        told = ", ".join(filter(None, (f"logit {found.logit:.2f}", found.note, windows)))
        return Grade(passage.id, min(max(score, 0.0), 1.0), told, ((LOGIT, found.logit),))


class NamedStripEvaluator(NamedEvaluator):
    """A token pruner, which scores sentences too: by the mean chance of a sentence's tokens to be kept."""

    @cached_property
    def card(self) -> EvaluatorCard:
        cutoff = self._made.strip_cutoff if self._made else keep_above(self.files)
        return replace(super().card, strip_cutoff=cutoff)

    def score(
        self, question: str, chunks: Sequence[tuple[Passage, Sequence[Strip]]], cancel: Cancel
    ) -> tuple[tuple[Strip, ...], str]:
        """From the reading that graded the chunk, where it was graded just before."""
        if not words(question):
            return tuple(strip for _, some in chunks for strip in some), "The question has no words."
        headings = [heading_of(passage) for passage, _ in chunks]
        texts = [heading + passage.text for heading, (passage, _) in zip(headings, chunks, strict=True)]
        readings = self._reader.read(question, texts, cancel)
        return tuple(
            replace(strip, score=_mean_kept(reading, strip.start + len(heading), strip.end + len(heading)))
            for (_, some), heading, reading in zip(chunks, headings, readings, strict=True)
            for strip in some
        ), ""


def _mean_kept(reading: Reading, start: int, end: int) -> float:
    """Over the tokens that lie in the sentence; 0 without any."""
    held = [chance for a, b, chance in reading.kept if a < end and b > start]
    return min(max(math.fsum(held) / len(held), 0.0), 1.0) if held else 0.0


def _logistic(logit: float) -> float:
    return 0.5 * (1.0 + math.tanh(logit / 2))
