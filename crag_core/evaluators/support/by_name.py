"""Whether the evidence supports a sentence of an answer, by a model of the hub or of a folder, chosen from its files.

A classifier of pairs with a label of entailment (NLI), or one of tokens that says which are hallucinated. Its code is
never run and pickled weights are never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Protocol, Self

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.base.protocols import Backing, Cancel, Piece
from crag_core.evaluators.named.files import ModelFiles
from crag_core.evaluators.support.entailment import Entailment
from crag_core.evaluators.support.parts import Claim, SupportParts, claims_in
from crag_core.evaluators.support.reading import files_of
from crag_core.evaluators.support.spans import Spans
from crag_core.trace.grounding.citation_check import Evidence


class Model(Protocol):
    def check(
        self, sentences: Sequence[str], claims: Sequence[Claim], evidence: Evidence, question: str, cancel: Cancel
    ) -> dict[int, Backing]:
        """What stands behind each claim, by its place among the sentences; raises `Stopped`."""


MODELS: dict[str, type[Entailment | Spans]] = {
    "ForSequenceClassification": Entailment,
    "ForTokenClassification": Spans,
}
"""By the end of the name of the architecture in config.json."""


class NamedSupport:
    """The model `setting`, loaded at the first use; `measure` raises `EvaluatorUnavailable` or `Stopped`.

    A quotation scores 1 without being read. A model names no evidence: the pieces are the nearest ones by words.
    """

    def __init__(self, setting: str, stop_words: frozenset[str]) -> None:
        self._setting = setting
        self._stop_words = stop_words

    @classmethod
    def build(cls, setting: str, parts: SupportParts) -> Self:
        return cls(setting, parts.stop_words)

    def measure(
        self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel, question: str = ""
    ) -> tuple[Backing, ...]:
        """One a sentence of an answer, in order."""
        evidence = Evidence(tuple(pieces))
        found, claims = claims_in(sentences, evidence, self._stop_words)
        if claims:
            found |= load(self._setting).check(sentences, claims, evidence, question, cancel)
        return tuple(found.get(place, Backing(None)) for place in range(len(sentences)))


_loading = Lock()


def load(setting: str) -> Model:
    """The last models that were asked for stay in memory; raises `EvaluatorUnavailable`."""
    files = files_of(setting)
    with _loading:
        return _opened(files)


@lru_cache(2)
def _opened(files: ModelFiles) -> Model:
    names = [str(name) for name in files.config.get("architectures") or ()]
    for name in names:
        for end, kind in MODELS.items():
            if name.endswith(end):
                return kind(files)
    raise EvaluatorUnavailable(
        f"Expected a classifier of pairs (NLI) or of tokens in {files.folder}, found {', '.join(names) or 'none'}.",
        hint="Name a model whose config.json says ForSequenceClassification or ForTokenClassification.",
    )
