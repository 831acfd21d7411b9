"""What evaluators are built from, and what weakens the grades of a model that learned from English texts alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from crag_core.base.errors import ModelMissing
from crag_core.base.prompts.messages import Prompts, shipped
from crag_core.base.protocols import Embedder, LanguageModel
from crag_core.base.text.words import foreign_language
from crag_core.decision.signals import SignalMeter

MINILM = "all-MiniLM-L6-v2"
"""The embedding model that ships here; it learned from English."""


@dataclass(frozen=True)
class EvaluatorParts:
    """`trained` is the folder of our own model; `model` is None where no language model was chosen."""

    embedder: Embedder
    meter: SignalMeter
    trained: Path
    model: LanguageModel | None = None
    prompts: Prompts = field(default_factory=shipped)

    def model_for(self, evaluator: str) -> LanguageModel:
        if self.model is None:
            raise ModelMissing(
                f"The evaluator {evaluator!r} needs a language model.", hint="Choose a model, or another evaluator."
            )
        return self.model


def less_sure(question: str, text: str) -> str:
    """The `Grade.caution` of a model that learned from English; "" where neither is seen to be in another language."""
    for what, said in (("chunk", text), ("question", question)):  # a question is short, and less sure to be named
        if language := foreign_language(said):
            return f"less sure of a {what} in {language}, since the evaluator learned from English"
    return ""
