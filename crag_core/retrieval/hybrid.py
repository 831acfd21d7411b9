"""Meaning and words searched side by side and fused by rank."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crag_core.protocols import Embedder, Found
from crag_core.retrieval.store import Hit, PassageStore
from crag_core.types import Passage, Scores

if TYPE_CHECKING:
    import numpy as np

DENSE = "dense"
KEYWORD = "keyword"
# The constant of Cormack, Clarke and Büttcher 2009, doi:10.1145/1571941.1572114.
RRF_K = 60
_POOL = 4
_LONGEST_QUESTION = 10_000


class HybridRetriever:
    """A `Retriever`. `engines` narrows it to one of them, which gives that engine's own order.

    Every passage carries "cosine" (computed here from the stored vector, also for passages that only their words
    found), "keyword" (BM25, where the words found it) and "rrf".
    """

    def __init__(self, store: PassageStore, embedder: Embedder, engines: Sequence[str] = (DENSE, KEYWORD)) -> None:
        unknown = set(engines) - {DENSE, KEYWORD}
        if unknown or not engines:
            raise ValueError(f"expected engines among {DENSE!r} and {KEYWORD!r}, found {tuple(engines)}")
        self._store = store
        self._embedder = embedder
        self._engines = tuple(engines)

    def retrieve(self, question: str, limit: int) -> Found:
        """At most `limit` passages, best first; a blank question and an empty store find nothing."""
        question = clean_question(question)
        if not question or limit < 1 or not self._store.count():
            return Found(())
        import numpy as np

        asked = np.asarray(self._embedder.embed_question(question), dtype=np.float32)
        pool = max(limit * _POOL, 20)
        found: dict[str, list[Hit]] = {}
        if DENSE in self._engines:
            found[DENSE] = self._store.search_dense(asked.tolist(), pool)
        if KEYWORD in self._engines:
            found[KEYWORD] = self._store.search_keyword(question, pool)
        hits = {hit.passage.id: hit for ranked in found.values() for hit in ranked}
        rrf = fuse_ranks([[hit.passage.id for hit in ranked] for ranked in found.values()])
        cosines = {id_: measure_cosine(asked, hit.vector) for id_, hit in hits.items()}
        best = sorted(hits, key=lambda id_: (-rrf[id_], -cosines[id_], id_))[:limit]
        words = {hit.passage.id: hit.score for hit in found.get(KEYWORD, ())}
        passages = tuple(
            _describe(hits[id_].passage, cosines[id_], words.get(id_), rrf[id_], _name_finders(id_, found))
            for id_ in best
        )
        return Found(passages, measure_agreement([hits[id_].vector for id_ in best]))


def clean_question(question: str) -> str:
    """Letters composed as in the index (some keyboards send "a" and its dots apart), nothing that UTF-8 cannot hold."""
    sound = question[:_LONGEST_QUESTION].encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFC", sound).strip()


def fuse_ranks(rankings: Sequence[Sequence[str]], k: int = RRF_K) -> dict[str, float]:
    """Reciprocal-rank fusion: each ranking gives its n-th entry (from 1) 1 / (k + n)."""
    fused: dict[str, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, 1):
            fused[id_] = fused.get(id_, 0.0) + 1.0 / (k + rank)
    return fused


def measure_cosine(left: np.ndarray, right: np.ndarray) -> float:
    """In -1..1; 0 when either vector is all zeros."""
    import numpy as np

    size = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(np.clip(np.dot(left, right) / size, -1.0, 1.0)) if size else 0.0


def measure_agreement(vectors: Sequence[np.ndarray]) -> float | None:
    """The mean cosine of all pairs, None when there is no pair."""
    pairs = [measure_cosine(one, other) for index, one in enumerate(vectors) for other in vectors[index + 1 :]]
    return sum(pairs) / len(pairs) if pairs else None


def _name_finders(passage_id: str, found: dict[str, list[Hit]]) -> tuple[str, ...]:
    return tuple(engine for engine, hits in found.items() if any(hit.passage.id == passage_id for hit in hits))


def _describe(passage: Passage, cosine: float, keyword: float | None, rrf: float, found_by: tuple[str, ...]) -> Passage:
    scores: Scores = (("cosine", cosine), *((("keyword", keyword),) if keyword is not None else ()), ("rrf", rrf))
    return replace(passage, scores=scores, found_by=found_by)
