"""Whether the evidence supports the sentences of an answer: by words or by a language model."""

from __future__ import annotations

from crag_core.base.protocols import SupportMeter
from crag_core.evaluators.support.by_model import ModelSupport
from crag_core.evaluators.support.minicheck import MiniCheckSupport
from crag_core.evaluators.support.parts import SupportParts
from crag_core.evaluators.support.words import WordSupport
from crag_core.trace.grounding.checkers import Checker, checker_of


def open_support(setting: str, parts: SupportParts) -> SupportMeter:
    """Who checks answers by CRAG_SUPPORT; loads nothing heavy. Raises `ModelMissing` where the model is unknown."""
    checker = checker_of(setting)
    if checker is Checker.WORDS:
        return WordSupport(parts.trained, parts.stop_words)
    model = parts.model_for(setting)
    if checker is Checker.MINICHECK:
        return MiniCheckSupport(model, parts.stop_words)
    return ModelSupport(model, parts.stop_words, parts.prompts)
