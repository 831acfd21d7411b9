"""Whether the evidence supports the sentences of an answer: by words or by a language model."""

from __future__ import annotations

from typing import Protocol

from crag_core.base.protocols import SupportMeter
from crag_core.evaluators.support.by_model import ModelSupport
from crag_core.evaluators.support.minicheck import MiniCheckSupport
from crag_core.evaluators.support.parts import SupportParts
from crag_core.evaluators.support.words import WordSupport
from crag_core.trace.grounding.checkers import Checker, checker_of


class SupportClass(Protocol):
    def build(self, setting: str, parts: SupportParts) -> SupportMeter:
        """Loads nothing heavy."""


SUPPORT: dict[Checker, SupportClass] = {
    Checker.WORDS: WordSupport,
    Checker.LANGUAGE_MODEL: ModelSupport,
    Checker.MINICHECK: MiniCheckSupport,
}
"""By the kind that the setting CRAG_SUPPORT names."""


def open_support(setting: str, parts: SupportParts) -> SupportMeter:
    return SUPPORT[checker_of(setting)].build(setting, parts)
