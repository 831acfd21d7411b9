"""One document into passages with vectors: read, split and embedded, without touching the index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crag_core.documents import Document, Generation
from crag_core.errors import Stopped
from crag_core.protocols import Cancel, Embedder
from crag_core.retrieval.chunking import Cut, Source, Tokenize, split_pages
from crag_core.retrieval.hits import now
from crag_core.retrieval.readers import Page

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

Read = Callable[[bytes, str, Cancel], Sequence[Page]]
"""(content, name, cancel) to pages; raises `DocumentRefused`, and `Stopped` once `cancel` is set."""
OnEmbedded = Callable[[int, int], None]
"""Is told how many passages of how many have a vector."""

_EMBEDDED_AT_ONCE = 32


class Preparer:
    """Makes passages for one generation. Raises `Stopped` once `cancel` is set, and `EmbeddingUnavailable`."""

    def __init__(self, generation: Generation, embedder: Embedder, read: Read, cancel: Cancel) -> None:
        self.generation = generation
        self._embedder = embedder
        self.cut = cut_of(generation, embedder)
        self._read = read
        self._cancel = cancel

    def prepare(self, row: Document, content: bytes, on_embedded: OnEmbedded) -> tuple[Document, list[TextNode]]:
        """The row with what reading told of the document, and its passages; raises `DocumentRefused` too."""
        return self.prepare_pages(row, self._read(content, row.name, self._cancel), on_embedded)

    def prepare_pages(
        self, row: Document, pages: Sequence[Page], on_embedded: OnEmbedded
    ) -> tuple[Document, list[TextNode]]:
        numbers = [page.number for page in pages if page.number is not None]
        characters = sum(len(page.text) for page in pages)
        row = replace(row, pages=max(numbers, default=0), characters=characters, changed_at=now())
        nodes = split_pages(pages, Source(row.id, row.name, row.pages, row.characters, row.changed_at), self.cut)
        for start in range(0, len(nodes), _EMBEDDED_AT_ONCE):
            self.look()
            on_embedded(start, len(nodes))
            batch = nodes[start : start + _EMBEDDED_AT_ONCE]
            vectors = self._embedder.embed_texts([node.text for node in batch])
            for node, vector in zip(batch, vectors, strict=True):
                node.embedding = list(vector)
        self.look()
        on_embedded(len(nodes), len(nodes))
        return row, nodes

    def look(self) -> None:
        if self._cancel.is_set():
            raise Stopped("Stopped by you.")


def cut_of(generation: Generation, embedder: Embedder) -> Cut:
    """In the embedding model's own tokens, where it offers them, so that no passage is longer than it reads."""
    tokenize: Tokenize | None = getattr(embedder, "tokenize", None)
    return Cut(generation.tokens, generation.overlap, tokenize)
