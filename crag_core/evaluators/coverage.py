"""Keyword coverage: the idf-weighted share of a question's words that a text holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from crag_core.base.text.words import words


@dataclass(frozen=True)
class Rarity:
    """In how many of `documents` texts each word stands; a word that is not listed stands in none."""

    documents: int
    words: Mapping[str, int]

    def idf(self, word: str) -> float:
        """Inverse document frequency: log((N + 1) / (n + 1))."""
        return math.log((self.documents + 1) / (self.words.get(word, 0) + 1))

    def weigh(self, question: str, stop_words: frozenset[str]) -> dict[str, float]:
        """The question's distinct words with their idf, stop words left out."""
        return {word: self.idf(word) for word in words(question) if word not in stop_words}


def coverage(weights: Mapping[str, float], text: str) -> float:
    """Share of the weight, in 0..1, whose words stand in `text`; 0 when there is no weight."""
    there = set(words(text))
    total = math.fsum(weights.values())
    return math.fsum(weight for word, weight in weights.items() if word in there) / total if total > 0 else 0.0
