"""In place of the embedding model, for tests that are not about it, and for processes that must start quickly.

Run as a program it is the command line with that embedder: `python -m tests.word_embedder ask "…"`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


class WordEmbedder:
    """Texts that share words lie close together; made like `HuggingFaceEmbedder`."""

    name = "words"

    def __init__(self, name: str = "") -> None:
        pass

    def embed_question(self, text: str) -> Sequence[float]:
        vector = [0.1] * 32
        for word in text.lower().replace(".", "").replace("?", "").split():
            vector[sum(word.encode()) % 32] += 1.0
        return vector

    def embed_texts(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self.embed_question(text) for text in texts]

    def load(self) -> None:
        """There is nothing to load."""

    def tokenize(self, text: str) -> list[str]:
        return text.split()

    def longest(self) -> int:
        return 254


if __name__ == "__main__":
    from crag_core.__main__ import main
    from crag_core.app import workbench

    workbench.HuggingFaceEmbedder = WordEmbedder  # type: ignore[misc,assignment]
    sys.exit(main())
