"""Whether the evidence supports the sentences of an answer: by words or by a language model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crag_core.base.errors import ModelMissing
from crag_core.base.prompts.messages import Prompts
from crag_core.base.protocols import LanguageModel, SupportMeter
from crag_core.evaluators.support.by_model import ModelSupport
from crag_core.evaluators.support.words import WordSupport
from crag_core.trace.grounding.citation_check import WORDS


def open_support(
    setting: str,
    trained: Path,
    stop_words: frozenset[str],
    open_model: Callable[[str], LanguageModel | None],
    prompts: Prompts | None = None,
) -> SupportMeter:
    """Who checks answers by CRAG_SUPPORT; loads nothing heavy. Raises `ModelMissing` where the model is unknown.

    `trained` is the folder of our own model, `open_model` gives the language model of "ollama/NAME" and the like.
    """
    if setting == WORDS:
        return WordSupport(trained, stop_words)
    model = open_model(setting)
    if model is None:
        raise ModelMissing(f"{setting!r} is no language model that checks answers.", hint="Set CRAG_SUPPORT.")
    return ModelSupport(model, stop_words, prompts)
