"""Decides when an approximate vector index pays, and its search effort, by measured recall."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from crag_core.base.documents import IndexVersion
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends.backend import Passages
from crag_core.retrieval.hits import Hit
from crag_core.retrieval.index.index_writer import IndexWriter

WARRANTED = 50_000
"""Passages from which on looking at every one takes too long; below, the search is exact."""
GOOD_RECALL, GOOD_WORST = 0.98, 0.9
"""The share of the nearest that is to be found, on average and for the worst tenth of the questions."""
ASKED, NEAREST = 100, 20
"""So many passages are taken as questions, and so many of the nearest to each are looked for."""
_GROWN = 1.5
"""The index is made anew when there are so many times as many passages as when it was measured."""
_log = logging.getLogger(__name__)


class Approximation:
    """Keeps the approximate index of a store as it should be; none of it is done inside the lock but noting a row."""

    def __init__(self, index_writer: IndexWriter) -> None:
        self._index_writer = index_writer

    def try_refresh(self) -> None:
        """For the current generation; a failure costs time at the next question, and nothing else."""
        try:
            self.refresh(self._index_writer.generations.current())
        except StoreUnavailable as fault:
            _log.warning("the index for approximate search could not be made: %s", fault)

    def refresh(self, generation: IndexVersion) -> IndexVersion:
        """Make the index and measure it if that is due; the generation with its effort and recall."""
        passages = self._index_writer.passages(generation)
        rows, indexed = passages.coverage()
        if rows < WARRANTED:
            return self._note(generation, 0, 1.0, 0) if generation.measured else generation
        has_grown = rows >= _GROWN * generation.measured
        is_lost = generation.effort and not indexed
        if not has_grown and not is_lost and not passages.is_worn():
            return generation
        passages.index_vectors()
        if not passages.coverage()[1]:  # the engine cannot index vectors of this length
            return self._note(generation, 0, 1.0, rows)
        effort, recall = self._choose(generation, passages)
        return self._note(generation, effort, recall, rows)

    def _choose(self, generation: IndexVersion, passages: Passages) -> tuple[int, float]:
        """The least effort that finds enough, else the most; and the share that it finds."""
        asked = passages.sample(ASKED)
        exact = [_nearest(passages, hit, exact=True) for hit in asked]
        effort, recall = 0, 1.0
        for effort in passages.efforts:
            quick = self._index_writer.passages(replace(generation, effort=effort))
            shares = sorted(measure_recalls([_nearest(quick, hit) for hit in asked], exact))
            recall = fmean(shares) if shares else 1.0
            worst = shares[len(shares) // 10] if shares else 1.0
            if recall >= GOOD_RECALL and worst >= GOOD_WORST:
                break
        return effort, recall

    def _note(self, generation: IndexVersion, effort: int, recall: float, rows: int) -> IndexVersion:
        noted = replace(generation, effort=effort, recall=recall, measured=rows)
        self._index_writer.note_search(noted)
        return noted


def measure_recalls(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> list[float]:
    """For each question the share of the exactly nearest that was found; 1.0 where there was nothing to find."""
    return [len({*one} & {*true}) / len(true) if true else 1.0 for one, true in zip(found, exact, strict=True)]


def _nearest(passages: Passages, asked: Hit, exact: bool = False) -> list[str]:
    """Ids of the nearest passages, without the one that is asked for."""
    hits = passages.search_dense(asked.vector.tolist(), NEAREST + 1, exact=exact)
    return [hit.passage.id for hit in hits if hit.passage.id != asked.passage.id][:NEAREST]
