"""Retrievers of both worlds: ours for LlamaIndex, any LlamaIndex retriever for a run, and chunks that are given."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle

from crag_core.base.errors import BadRecord, CragError, StoreUnavailable
from crag_core.base.protocols import Found, Retriever
from crag_core.base.text.words import fold
from crag_core.base.types import Engine, Passage
from crag_core.llamaindex.nodes import to_node, to_passages
from crag_core.llamaindex.run_query import CorpusQuery

TOP_K = 6


class CRAGRetriever(BaseRetriever):
    """The index of this project as a LlamaIndex retriever: dense and BM25 side by side, fused by rank.

    `source` is a `HybridRetriever`, or whatever retrieves as one. `top_k` chunks a question; `embedding` names the
    model of the index for the record, `collection` the part of it that is searched.
    """

    def __init__(
        self,
        source: Retriever,
        top_k: int = TOP_K,
        *,
        embedding: str = "",
        collection: str = "",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager)
        self.source = source
        self.top_k = top_k
        self.embedding = embedding
        self.collection = collection

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not isinstance(query_bundle, CorpusQuery):
            return [to_node(one) for one in self.source.retrieve(query_bundle.query_str, self.top_k).passages]
        found = self.source.retrieve(query_bundle.query_str, query_bundle.limit, query_bundle.engine)
        query_bundle.agreement = found.agreement
        return [to_node(one) for one in found.passages]


class NodeRetriever:
    """A `Retriever` of a run over any retriever of LlamaIndex, which is asked as LlamaIndex asks it, events included.

    One that is not ours finds as many nodes as it was made for, by its own engine; `limit` cuts what it found.
    """

    def __init__(self, retriever: BaseRetriever, score_name: str = "retriever", hidden: str = "") -> None:
        self._retriever = retriever
        self._score_name = score_name
        self._hidden = hidden

    def hiding(self, text: str) -> NodeRetriever:
        if not isinstance(self._retriever, CRAGRetriever):
            return NodeRetriever(self._retriever, self._score_name, fold(text))
        other = copy(self._retriever)
        other.source = self._retriever.source.hiding(text)
        return NodeRetriever(other, self._score_name)

    def retrieve(self, question: str, limit: int, engine: Engine = Engine.HYBRID) -> Found:
        query = CorpusQuery(question, limit, engine)
        try:
            nodes = self._retriever.retrieve(query)
        except Exception as error:
            if isinstance(error, CragError) or isinstance(self._retriever, CRAGRetriever):
                raise
            kind = type(self._retriever).__name__
            raise StoreUnavailable(f"The retriever {kind} failed: {type(error).__name__}: {error}") from error
        passages = to_passages(nodes, self._score_name)
        shown = [one for one in passages if not self._hidden or self._hidden not in fold(one.text)]
        return Found(tuple(shown[:limit]), query.agreement)

    def read_files(self, document_ids: Sequence[str]) -> tuple[Passage, ...]:
        if isinstance(self._retriever, CRAGRetriever):
            return self._retriever.source.read_files(document_ids)
        raise BadRecord(
            f"{type(self._retriever).__name__} cannot read whole files.",
            hint="Pin files only where the index of this project is searched.",
        )


class RecordedRetriever:
    """Finds what another system has retrieved, as it stands in that system's log, whatever is asked.

    It has all of it, in its order: how much was retrieved, that system has decided.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = tuple(passages)

    def hiding(self, text: str) -> RecordedRetriever:
        hidden = fold(text)
        return RecordedRetriever([one for one in self._passages if not hidden or hidden not in fold(one.text)])

    def retrieve(self, question: str, limit: int, engine: Engine = Engine.HYBRID) -> Found:
        return Found(self._passages)

    def read_files(self, document_ids: Sequence[str]) -> tuple[Passage, ...]:
        raise BadRecord(
            "A log holds the chunks that were retrieved, and no whole files.",
            hint="Unpin the files, or ask the question of your own index.",
        )
