"""Turns one document into embedded passages; does not touch the index."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crag_core.base.documents import Document, IndexVersion
from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel, Embedder
from crag_core.retrieval.chunking.split import Chunks, Cut, Tokenize, cut_document, make_nodes
from crag_core.retrieval.hits import now
from crag_core.retrieval.readers import Page

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

Read = Callable[[bytes, str, Cut, Cancel], Chunks]
"""(content, name, cut, cancel) to chunks; raises `DocumentRefused`, and `Stopped` once `cancel` is set."""
OnEmbedded = Callable[[int, int], None]
"""Called with the number of passages that have a vector, and of all."""

# A stop waits for so many: half a second of the built-in model on two cores.
_EMBEDDED_AT_ONCE = 16


class Preparer:
    """Makes passages for one version. Raises `Stopped` once `cancel` is set, and `EmbeddingUnavailable`."""

    def __init__(self, version: IndexVersion, embedder: Embedder, read: Read, cancel: Cancel) -> None:
        self.version = version
        self._embedder = embedder
        self.cut = cut_of(version, embedder)
        self._read = read
        self._cancel = cancel

    def prepare(self, row: Document, content: bytes, on_embedded: OnEmbedded) -> tuple[Document, list[TextNode]]:
        """The row with what reading found out about the document, and its passages; raises `DocumentRefused` too."""
        cut = replace(self.cut, tokenizer=_find_tokenizer(self._embedder))
        return self._embed(row, self._read(content, row.name, cut, self._cancel), on_embedded)

    def prepare_pages(
        self, row: Document, pages: Sequence[Page], on_embedded: OnEmbedded
    ) -> tuple[Document, list[TextNode]]:
        """The same of a text that was read before."""
        return self._embed(row, cut_document(pages, row.name, self.cut, self._cancel), on_embedded)

    def _embed(self, row: Document, read: Chunks, on_embedded: OnEmbedded) -> tuple[Document, list[TextNode]]:
        row = replace(row, pages=read.pages, characters=read.characters, changed_at=now())
        nodes = make_nodes(read.chunks, row)
        for start in range(0, len(nodes), _EMBEDDED_AT_ONCE):
            self.check_cancel()
            on_embedded(start, len(nodes))
            batch = nodes[start : start + _EMBEDDED_AT_ONCE]
            vectors = self._embedder.embed_texts([node.text for node in batch])
            for node, vector in zip(batch, vectors, strict=True):
                # A list of Python's own numbers takes eight times the memory, and the index keeps no more of each; an
                # assignment would make it one again.
                object.__setattr__(node, "embedding", array("f", vector))
        self.check_cancel()
        on_embedded(len(nodes), len(nodes))
        return row, nodes

    def check_cancel(self) -> None:
        if self._cancel.is_set():
            raise Stopped("Stopped by you.")


def cut_of(version: IndexVersion, embedder: Embedder) -> Cut:
    """In the embedding model's own tokens, where it offers them, so that no passage is longer than it reads."""
    tokenize: Tokenize | None = getattr(embedder, "tokenize", None)
    return Cut(version.tokens, version.overlap, tokenize)


def _find_tokenizer(embedder: Embedder) -> str:
    find: Callable[[], str] | None = getattr(embedder, "find_tokenizer", None)
    return find() if find else ""
