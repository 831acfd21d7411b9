"""What lies nearest to a question in a small corpus; an embedder that works once a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from crag_core.base.protocols import Embedder

_AT_ONCE = 512


class RememberingEmbedder:
    """An `Embedder` that asks `embedder` for every text once: sets share passages, and evaluators share both."""

    def __init__(self, embedder: Embedder, tell: Callable[[str], None] = lambda text: None) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._tell = tell
        self._known: dict[str, np.ndarray[Any, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)  # its tokenizer

    def embed_question(self, text: str) -> Sequence[float]:
        return self.embed_texts([text])[0]

    def embed_texts(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.remember(texts)
        return [self._known[text].tolist() for text in texts]

    def remember(self, texts: Iterable[str]) -> None:
        """Embed what is new, sorted by length so that little of a batch is padding. MiniLM reads questions as texts."""
        new = sorted({text for text in texts if text not in self._known}, key=len)
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            self._known |= zip(some, np.array(self._embedder.embed_texts(some), dtype=np.float32), strict=True)
            if len(new) > _AT_ONCE:
                self._tell(f"  embedded {start + len(some)} of {len(new)} texts")

    def vectors(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """One row a text, each of length 1."""
        self.remember(texts)
        rows = np.array([self._known[text] for text in texts])
        lengths: np.ndarray[Any, Any] = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, 1e-12))


class Nearest:
    def __init__(self, texts: Sequence[str], embedder: RememberingEmbedder) -> None:
        self._embedder = embedder
        self._vectors = embedder.vectors(texts)

    def find(self, question: str) -> list[tuple[int, float]]:
        """Places of the texts with their cosines, best first."""
        scores = self._vectors @ self._embedder.vectors([question])[0]
        return [(int(place), float(scores[place])) for place in np.argsort(-scores, kind="stable")]
