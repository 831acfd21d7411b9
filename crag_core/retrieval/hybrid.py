"""Hybrid retrieval: dense and BM25 side by side, fused by rank; and whole documents from the index."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from crag_core.base.errors import DocumentMissing, WrongUse
from crag_core.base.protocols import Embedder, RetrievalResult
from crag_core.base.text.codes import codes_of, has_code
from crag_core.base.text.words import fold
from crag_core.base.types.passages import Engine, Passage, Scores
from crag_core.decision.fusion import fuse_ranks
from crag_core.retrieval.index.index_writer import IndexVersionChanged
from crag_core.retrieval.index.search import Hit
from crag_core.retrieval.index.store import PassageStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

_POOL = 4
_LONGEST_QUESTION = 10_000


@dataclass(frozen=True)
class HybridRetriever:
    """A `Retriever`.

    Every passage carries "cosine" (computed from its stored vector, also where only the keyword search found it),
    "keyword" (BM25, where the keyword search found it) and "rrf".
    """

    store: PassageStore
    collection: str = ""
    """The part of the index that is searched; "": all of it."""
    hidden: str = ""
    """Passages with this text are not found."""
    texts: tuple[str, ...] = ()
    """A question is searched for by the mean vector of these, where there are any; by words it is searched for as it
    is."""
    vector: tuple[float, ...] = ()
    """A question is searched for by this vector, where there is one."""

    def within(self, collection: str) -> HybridRetriever:
        return replace(self, collection=collection)

    def hiding(self, text: str) -> HybridRetriever:
        return replace(self, hidden=text)

    def meaning(self, texts: Sequence[str], vector: Sequence[float] = ()) -> HybridRetriever:
        return replace(self, texts=tuple(texts), vector=tuple(vector))

    def retrieve(self, question: str, limit: int, engine: Engine = Engine.HYBRID) -> RetrievalResult:
        """At most `limit` passages, best first; a blank question and an empty store find nothing.

        One engine alone keeps its own order.
        """
        question = clean_question(question)
        while question and limit > 0 and self.store.count(self.collection):
            with suppress(IndexVersionChanged):  # between embedding and searching: once more
                return self._retrieve(question, limit, engine, self.store.pinned())
        return RetrievalResult(())

    def _retrieve(self, question: str, limit: int, engine: Engine, store: PassageStore) -> RetrievalResult:
        asked, pool = self._embedded(question, store.embedder), max(limit * _POOL, 20)
        found: dict[Engine, list[Hit]] = {}
        if engine != Engine.KEYWORD:
            found[Engine.DENSE] = store.search_dense(asked.tolist(), pool, self.collection)
        if engine != Engine.DENSE:
            found[Engine.KEYWORD] = store.search_keyword(question, pool, self.collection)
        if hidden := fold(self.hidden):
            found = {one: [hit for hit in hits if hidden not in fold(hit.passage.text)] for one, hits in found.items()}
        scores = {one: {hit.passage.id: hit.score for hit in hits} for one, hits in found.items()}
        hits = {hit.passage.id: hit for ranked in found.values() for hit in ranked}
        rrf = fuse_ranks([list(by_id) for by_id in scores.values()])
        cosines = {id_: measure_cosine(asked, hit.vector) for id_, hit in hits.items()}
        in_order = sorted(hits, key=lambda id_: (-rrf[id_], -cosines[id_], id_))
        # The best chunk with each code that is named is among those found, at its place by rank.
        holding = (
            next((id_ for id_ in in_order if has_code(hits[id_].passage.text, code)), "") for code in codes_of(question)
        )
        chosen = list(dict.fromkeys([*filter(None, holding), *in_order]))[:limit]
        best = [id_ for id_ in in_order if id_ in chosen]
        keyword = scores.get(Engine.KEYWORD, {})
        passages = tuple(
            replace(
                hits[id_].passage,
                scores=_list_scores(cosines[id_], keyword.get(id_), rrf[id_]),
                found_by=tuple(one.value for one, by_id in scores.items() if id_ in by_id),
            )
            for id_ in best
        )
        return RetrievalResult(passages, measure_agreement([hits[id_].vector for id_ in best]))

    def read_files(self, document_ids: Sequence[str]) -> tuple[Passage, ...]:
        """Each document once as one passage without scores, in the given order.

        Raises `DocumentMissing` for the first that is not indexed.
        """
        return tuple(map(self._read_file, dict.fromkeys(document_ids)))

    def _embedded(self, question: str, embedder: Embedder) -> np.ndarray:
        """Of length 1 where it is not the embedder's own vector."""
        import numpy as np

        own = np.asarray(embedder.embed_question(question), dtype=np.float32)
        if not (self.texts or self.vector):
            return own
        texts = [clean_question(text) for text in self.texts]
        vectors = [self.vector] if self.vector else [embedder.embed_question(text) for text in texts]
        mean = np.asarray(vectors, dtype=np.float32).mean(axis=0)
        if mean.shape != own.shape or not np.isfinite(mean).all():
            raise WrongUse(
                f"Expected a query embedding of {own.size} finite numbers, by {embedder.name}, found {mean.size}.",
                hint="Embed the query with the model of the index, or give texts in custom_embedding_strs.",
            )
        return np.asarray(mean / (np.linalg.norm(mean) or 1.0))

    def _read_file(self, document_id: str) -> Passage:
        passages = self.store.passages_of(document_id)
        text = self.store.read_document(document_id)
        if not passages or text is None:
            raise DocumentMissing(
                f"Expected the id of an indexed document, found {document_id[:80]!r}.",
                hint="It was deleted or replaced by a new version: choose the file again, or add it once more.",
            )
        source, id_ = passages[0].source, f"file-{document_id}"
        return Passage(id_, text, source, document_id=document_id, found_by=("read_file",))


def clean_question(question: str) -> str:
    """Composed letters as in the index (some keyboards send "a" and its dots apart), valid UTF-8, stripped."""
    sound = question[:_LONGEST_QUESTION].encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFC", sound).strip()


def measure_cosine(left: ArrayLike, right: ArrayLike) -> float:
    """In -1..1; 0 when either vector is all zeros."""
    import numpy as np

    size = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(np.clip(np.dot(left, right) / size, -1.0, 1.0)) if size else 0.0


def measure_agreement(vectors: Sequence[ArrayLike]) -> float | None:
    pairs = [measure_cosine(one, other) for index, one in enumerate(vectors) for other in vectors[index + 1 :]]
    return sum(pairs) / len(pairs) if pairs else None


def _list_scores(cosine: float, keyword: float | None, rrf: float) -> Scores:
    return (("cosine", cosine), *((("keyword", keyword),) if keyword is not None else ()), ("rrf", rrf))
