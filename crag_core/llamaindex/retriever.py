"""Retrievers of both worlds: ours for LlamaIndex, any LlamaIndex retriever for a run, and chunks that are given."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle

from crag_core.base.errors import BadRecord, CragError, StoreUnavailable, WrongUse
from crag_core.base.protocols import RetrievalResult, Retriever
from crag_core.base.text.words import fold
from crag_core.base.types.passages import Engine, Passage
from crag_core.llamaindex.nodes import found_in, to_node
from crag_core.llamaindex.own_retriever import kind_of
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
        source = self._source_for(query_bundle)
        if not isinstance(query_bundle, CorpusQuery):
            return [to_node(one) for one in source.retrieve(query_bundle.query_str, self.top_k).passages]
        found = source.retrieve(query_bundle.query_str, query_bundle.limit, query_bundle.engine)
        query_bundle.agreement = found.agreement
        return [to_node(one) for one in found.passages]

    def _source_for(self, asked: QueryBundle) -> Retriever:
        """The source that searches with the texts or the vector of the query, where it has any."""
        if not searched_with(asked):
            return self.source
        if not (meaning := getattr(self.source, "meaning", None)):
            kind = type(self.source).__name__
            raise WrongUse(
                f"{kind} searches with the question alone, not with {searched_with(asked)}.",
                hint="Ask without a query transform such as HyDE.",
            )
        searching: Retriever = meaning(asked.custom_embedding_strs or (), asked.embedding or ())
        return searching


def searched_with(asked: QueryBundle) -> str:
    """What a query is to be searched for with in place of its text; "": its text."""
    if asked.embedding:
        return "the embedding that came with the query"
    texts = asked.custom_embedding_strs
    return "the texts that came with the query" if texts and texts != [asked.query_str] else ""


class NodeRetriever:
    """A `Retriever` of a run over any retriever of LlamaIndex, which is asked as LlamaIndex asks it, events included.

    One that is not ours finds as many nodes as it was made for, by its own engine; `limit` cuts what it found.
    """

    def __init__(self, retriever: BaseRetriever, score_name: str = "retriever") -> None:
        self._retriever = retriever
        self._score_name = score_name
        self._hidden = ""
        self._asked: QueryBundle | None = None
        self.given: list[NodeWithScore] = []

    def asking(self, asked: QueryBundle | None) -> NodeRetriever:
        """The same for one run, whose nodes it keeps in `given`, as they came.

        The question itself is searched for with the texts or the vector of `asked`; what a later round asks in its
        place is not.
        """
        other = copy(self)
        other._asked, other.given = asked, []
        return other

    def hiding(self, text: str) -> NodeRetriever:
        other = copy(self)
        if isinstance(self._retriever, CRAGRetriever):
            other._retriever = copy(self._retriever)
            other._retriever.source = self._retriever.source.hiding(text)
        else:
            other._hidden = fold(text)
        return other

    def retrieve(self, question: str, limit: int, engine: Engine = Engine.HYBRID) -> RetrievalResult:
        asked = self._asked
        is_as_asked = asked is not None and (question, engine) == (asked.query_str, Engine.HYBRID)
        query = CorpusQuery(question, limit, engine, asked if is_as_asked else None)
        by = searched_with(query)
        by = f"asked with {by}" if by else self._other_way(engine)
        try:
            nodes = self._retriever.retrieve(query)
        except Exception as error:
            if isinstance(error, CragError) or isinstance(self._retriever, CRAGRetriever):
                raise
            kind = kind_of(self._retriever)
            raise StoreUnavailable(f"The retriever {kind} failed: {type(error).__name__}: {error}") from error
        shown = [one for one in nodes if not self._hidden or self._hidden not in fold(one.node.get_content())]
        self.given += shown
        found = found_in(shown, self._score_name, limit)
        agreement = found.agreement if query.agreement is None else query.agreement
        return RetrievalResult(found.passages, agreement, by)

    def _other_way(self, engine: Engine) -> str:
        """What is said where a search by words or by meaning alone was asked for, which only our index can make."""
        if engine is Engine.HYBRID or isinstance(self._retriever, CRAGRetriever):
            return ""
        return f"{kind_of(self._retriever)} was asked in its own way: it cannot be asked for {engine.value} search"

    def read_files(self, document_ids: Sequence[str]) -> tuple[Passage, ...]:
        if isinstance(self._retriever, CRAGRetriever):
            return self._retriever.source.read_files(document_ids)
        raise BadRecord(
            f"{kind_of(self._retriever)} cannot read whole files.",
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

    def retrieve(self, question: str, limit: int, engine: Engine = Engine.HYBRID) -> RetrievalResult:
        return RetrievalResult(self._passages)

    def read_files(self, document_ids: Sequence[str]) -> tuple[Passage, ...]:
        raise BadRecord(
            "A log holds the chunks that were retrieved, and no whole files.",
            hint="Unpin the files, or ask the question of your own index.",
        )
