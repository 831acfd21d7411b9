"""The conditions that a labelled set was graded under; thresholds hold for these alone."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base import serialization
from crag_core.trace.trace import RunSettings


@dataclass(frozen=True)
class Conditions:
    """Everything but the question that grades and passages depend on. `writer`, `writer_version` and `prompts` are ""
    for an evaluator that asks no model; `corpus` is the fingerprint of the index."""

    evaluator: str
    evaluator_version: str
    writer: str
    prompts: str
    embedding: str
    top_k: int
    corpus: str
    writer_version: str = ""

    @property
    def fingerprint(self) -> str:
        """Without a version it is what it was before versions of models were known."""
        plain = dict(serialization.to_plain(self))
        if not self.writer_version:
            del plain["writer_version"]
        return serialization.fingerprint(plain)

    def changed(self, now: Conditions) -> tuple[str, ...]:
        """What is another thing now, in words."""
        changes = {
            "the evaluator": (self.evaluator, self.evaluator_version) != (now.evaluator, now.evaluator_version),
            "the language model that grades": self.writer != now.writer or _is_another_version(self, now),
            "the prompts": self.prompts != now.prompts,
            "the embedding model": self.embedding != now.embedding,
            "the number of chunks": self.top_k != now.top_k,
            "the documents": self.corpus != now.corpus,
        }
        return tuple(name for name, is_other in changes.items() if is_other)


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
        writer_version=settings.writer_version if asks else "",
    )


def _is_another_version(one: Conditions, other: Conditions) -> bool:
    versions = (one.writer_version, other.writer_version)
    return "" not in versions and versions[0] != versions[1]
