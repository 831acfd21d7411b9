"""What a workbench has at hand for an evaluator to be built from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from crag_core.base.errors import ModelMissing
from crag_core.base.prompts.messages import Prompts, shipped
from crag_core.base.protocols import Embedder, LanguageModel
from crag_core.decision.signals import SignalMeter


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
