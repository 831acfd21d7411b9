"""Support as entailment: how probable a classifier of sentence pairs finds it that the evidence entails a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crag_core.base.errors import EvaluatorUnavailable, Stopped
from crag_core.base.protocols import Backing, Cancel
from crag_core.evaluators.named.files import ModelFiles
from crag_core.evaluators.support.parts import Claim, nearest, passages_of
from crag_core.evaluators.support.reading import Reading, finite, labels_of
from crag_core.trace.grounding.citation_check import WEAK, Evidence

PREMISES = 8
"""Excerpts, or parts of long ones, that a claim is read with at most: those that hold most of its words."""


class Entailment:
    """Premise is the evidence, hypothesis the claim; the score is the best P(entailment) over the excerpts.

    Besides the excerpts one by one, the sentences nearest by words are one premise, since a claim may rest on several.
    """

    def __init__(self, files: ModelFiles) -> None:
        self._label = entailment_label(labels_of(files))
        self._reading = Reading(files, "AutoModelForSequenceClassification")

    def check(
        self, sentences: Sequence[str], claims: Sequence[Claim], evidence: Evidence, question: str, cancel: Cancel
    ) -> dict[int, Backing]:
        passages = self._passages(evidence)
        found = {}
        for claim in claims:
            near = set(nearest(claim, evidence))
            together = [at for at, piece in enumerate(evidence.pieces) if piece.id in near]
            premises = [*_nearest_first(passages, claim, evidence)[:PREMISES], *([together] if together else [])]
            chances = [self._chance(_text(places, evidence), claim.text, cancel) for places in premises]
            best = max(range(len(chances)), key=lambda at: chances[at])
            behind = nearest(claim, evidence, premises[best]) if chances[best] >= WEAK else ()
            found[claim.place] = Backing(chances[best], behind)
        return found

    def _passages(self, evidence: Evidence) -> list[list[int]]:
        """The places of each excerpt's pieces; of a long one in parts that can be read beside a claim."""
        with self._reading.at_work():
            sizes = [len(self._reading.tokenizer(one.text, verbose=False)["input_ids"]) for one in evidence.pieces]
        parts, taken, most = list[list[int]](), 0, self._reading.longest * 3 // 4
        for at, (piece, size) in enumerate(zip(evidence.pieces, sizes, strict=True)):
            is_new = not parts or evidence.pieces[parts[-1][-1]].excerpt != piece.excerpt
            if is_new or taken + size > most:
                parts.append([])
                taken = 0
            parts[-1].append(at)
            taken += size
        return parts

    def _chance(self, premise: str, hypothesis: str, cancel: Cancel) -> float:
        if cancel.is_set():
            raise Stopped("Stopped by you.")
        with self._reading.at_work():
            read = self._reading.tokenizer(
                premise, hypothesis, truncation="longest_first", max_length=self._reading.longest, return_tensors="pt"
            )
            chances = finite(self._reading.model(**read).logits[0].softmax(-1).tolist())
        return min(max(chances[self._label], 0.0), 1.0)


def _text(places: Sequence[int], evidence: Evidence) -> str:
    return " ".join(passages_of([evidence.pieces[at] for at in places]))


def _nearest_first(passages: Sequence[list[int]], claim: Claim, evidence: Evidence) -> list[list[int]]:
    """By how many of the claim's words they hold."""

    def shared(places: list[int]) -> int:
        return len(claim.content.keys() & frozenset().union(*(evidence.terms[at] for at in places)))

    return sorted(passages, key=lambda places: -shared(places))


def entailment_label(labels: Mapping[int, str]) -> int:
    """Its place among the labels of a model; raises `EvaluatorUnavailable` where they do not tell it."""
    names = {place: name.lower().replace("_", " ").replace("-", " ") for place, name in labels.items()}
    found = [
        place
        for place, name in names.items()
        if "entail" in name and not any(no in name for no in ("no ", "not ", "non "))
    ]
    if len(found) != 1 or len(names) < 2:  # a label alone always has the probability 1
        raise EvaluatorUnavailable(
            f"Expected a label of entailment among those of the model, found {', '.join(labels.values()) or 'none'}.",
            hint="Choose a model for natural language inference (NLI) whose config.json names its labels.",
        )
    return found[0]
