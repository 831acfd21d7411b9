"""An embedder without a model: texts that share words lie close together, always in the same place."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence

DIMENSION = 64


class WordEmbedder:
    """Each word gives one of 64 axes; `on_batch` is called before a batch of texts is embedded."""

    def __init__(self, name: str = "words-64", on_batch: Callable[[Sequence[str]], None] | None = None) -> None:
        self.tokenize: Callable[[str], Sequence[str]] | None = None
        self._name = name
        self._on_batch = on_batch
        self.embedded: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    def embed_question(self, text: str) -> list[float]:
        return embed_words(text)

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        if self._on_batch is not None:
            self._on_batch(texts)
        self.embedded += texts
        return [embed_words(text) for text in texts]


def embed_words(text: str) -> list[float]:
    # Like a real model, it has a vector even for a text without words.
    vector = [0.2] + [0.0] * (DIMENSION - 1)
    for word in re.findall(r"\w+", text.lower()):
        vector[hashlib.sha256(word.encode()).digest()[0] % DIMENSION] += 1.0
    size = math.sqrt(sum(value * value for value in vector))
    return [value / size for value in vector]


def write_prose(topic: str, sentences: int = 60) -> bytes:
    """Several passages about one topic, every sentence different."""
    return "\n\n".join(f"Sentence {number} tells something about {topic}." for number in range(sentences)).encode()
