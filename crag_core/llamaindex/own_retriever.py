"""A retriever that a setting of the application names, and what such a setting may name."""

from __future__ import annotations

from collections.abc import Callable

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore

KINDS: dict[str, tuple[type, str]] = {
    "retriever": (BaseRetriever, "index.as_retriever(similarity_top_k=20)"),
    "vector store": (BasePydanticVectorStore, "PGVectorStore.from_params(…)"),
}
"""What is expected, with an example."""
Ask = Callable[[Callable[[BaseRetriever], list[NodeWithScore]]], list[NodeWithScore]]
"""Gives the retriever to a function, and what that returns back; an error of it comes as a `CragError`."""


class OwnRetriever(BaseRetriever):
    """Finds what the retriever `target` finds, in its order; the first `similarity_top_k` of it are used.

    Making it opens nothing.
    """

    def __init__(self, target: str, top_k: int, ask: Ask) -> None:
        super().__init__()
        self.target = target
        self.similarity_top_k = top_k
        self._ask = ask

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        def work(asked: BaseRetriever) -> list[NodeWithScore]:
            found = asked.retrieve(query_bundle)
            if not all(isinstance(one, NodeWithScore) for one in found):
                raise TypeError("expected a list of NodeWithScore")
            return found

        return self._ask(work)


def kind_of(retriever: BaseRetriever) -> str:
    return retriever.target if isinstance(retriever, OwnRetriever) else type(retriever).__name__
