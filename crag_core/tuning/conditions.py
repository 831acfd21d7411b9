"""Under which conditions a labelled set was graded; thresholds hold for these alone."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core import records
from crag_core.trace import RunSettings


@dataclass(frozen=True)
class Conditions:
    """Everything but the question that grades and passages depend on. `writer` and `prompts` are "" for an evaluator
    that asks no model; `corpus` is the fingerprint of the index."""

    evaluator: str
    evaluator_version: str
    writer: str
    prompts: str
    embedding: str
    top_k: int
    corpus: str

    @property
    def fingerprint(self) -> str:
        return records.fingerprint(self)

    def changed(self, now: Conditions) -> tuple[str, ...]:
        """What is another thing now, in words."""
        told = {
            "the evaluator": (self.evaluator, self.evaluator_version) != (now.evaluator, now.evaluator_version),
            "the language model that grades": self.writer != now.writer,
            "the prompts": self.prompts != now.prompts,
            "the embedding model": self.embedding != now.embedding,
            "the number of passages": self.top_k != now.top_k,
            "the documents": self.corpus != now.corpus,
        }
        return tuple(name for name, is_other in told.items() if is_other)


def conditions_of(settings: RunSettings, corpus: str) -> Conditions:
    judge = settings.evaluator
    asks = judge.calls_model
    return Conditions(
        evaluator=judge.name,
        evaluator_version=judge.version,
        writer=settings.writer if asks else "",
        prompts=settings.prompts if asks else "",
        embedding=settings.embedding,
        top_k=settings.top_k,
        corpus=corpus,
    )
