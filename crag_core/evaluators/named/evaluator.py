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
from crag_core.base.types.passages import Passage
from crag_core.evaluators.named.files import ModelFiles, OnStatus, find_files, no_status
from crag_core.evaluators.named.names import ModelName, uncalibrated_card
from crag_core.evaluators.named.reader import open_reader
from crag_core.evaluators.shared.pair_encoder import heading_of

LOGIT = "logit"
"""The part of a grade that holds what the model said, before any calibration."""
VERSION = "2"
"""Of how these models are read here: another one makes other logits."""


@dataclass(frozen=True)
class Calibrated:
    """What a calibration gives: the chance by the logit, and thresholds of it. `version` tells calibrations apart."""

    revision: str
    probability: Callable[[float], float]
    lower: float
    upper: float
    version: str
    cost: str = "no LLM call"


class NamedEvaluator:
    """Grades by the model `name`; `made` None: not calibrated, the score is the logistic function of the logit.

    It is loaded at the first use, its hub files downloaded where they are not there. `grade` raises
    `EvaluatorUnavailable` or `Stopped`.
    """

    def __init__(self, name: ModelName, made: Calibrated | None = None, tell: OnStatus = no_status) -> None:
        self.name, self._made, self._tell = name, made, tell

    @cached_property
    def files(self) -> ModelFiles:
        """Of the revision that was calibrated; of the newest, where none was."""
        return find_files(self.name, self._tell, self._made.revision if self._made else "")

    @property
    def folder_now(self) -> str:
        """The digest of the folder as it is; raises `EvaluatorUnavailable`."""
        return find_files(self.name).revision

    @cached_property
    def card(self) -> EvaluatorCard:
        """Without a calibration it looks at the files, which may have to be downloaded."""
        card, made = uncalibrated_card(str(self.name)), self._made
        if made is None:
            scale = "logistic function of the model's logit, not calibrated"
            return replace(card, scale=scale, version=f"{self.files.revision} raw {VERSION}")
        scale = "chance that a question is answerable by a chunk, from the model's logit by its calibration, 0 to 1"
        version = f"{made.revision} calibrated {made.version} {VERSION}"
        return replace(card, scale=scale, lower=made.lower, upper=made.upper, cost=made.cost, version=version)

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        if not passages:
            return ()
        if not words(question):
            return tuple(Grade(passage.id, None, cause="The question has no words.") for passage in passages)
        started = time.perf_counter()
        texts = [heading_of(one) + one.text for one in passages]
        readings = open_reader(self.files).read(question, texts, cancel)
        each = (time.perf_counter() - started) / len(passages)
        return tuple(
            replace(self._grade(passage, *reading), seconds=each)
            for passage, reading in zip(passages, readings, strict=True)
        )

    def _grade(self, passage: Passage, logit: float, windows: int) -> Grade:
        if not passage.text.strip():
            return Grade(passage.id, 0.0, "no text")
        if not math.isfinite(logit):
            return Grade(passage.id, None, cause=f"The model gave {logit}, expected a finite number.")
        score = self._made.probability(logit) if self._made else 0.5 * (1.0 + math.tanh(logit / 2))
        told = f"logit {logit:.2f}" + (f", best of {windows} windows" if windows > 1 else "")
        return Grade(passage.id, min(max(score, 0.0), 1.0), told, ((LOGIT, logit),))
