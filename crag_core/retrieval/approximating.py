"""When an approximate index of the vectors is worth its misses, and how hard to search in it, by measured recall."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from crag_core.documents import Generation
from crag_core.errors import StoreUnavailable
from crag_core.retrieval.backends.backend import Passages
from crag_core.retrieval.hits import Hit
from crag_core.retrieval.shelf import Shelf

WARRANTED = 50_000
"""Passages from which on looking at every one takes too long; below, the search is exact."""
GOOD_RECALL = 0.95
ASKED, NEAREST = 100, 20
"""So many passages are taken as questions, and so many of the nearest to each are looked for."""
_GROWN = 1.5
"""The index is made anew when there are so many times as many passages as when it was measured."""
_log = logging.getLogger(__name__)


class Approximation:
    """Keeps the approximate index of a store as it should be; none of it is done inside the lock but noting a row."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def try_refresh(self) -> None:
        """For the current generation; a failure costs time at the next question, and nothing else."""
        try:
            self.refresh(self._shelf.generations.current())
        except StoreUnavailable as fault:
            _log.warning("the index for approximate search could not be made: %s", fault)

    def refresh(self, generation: Generation) -> Generation:
        """Make the index and measure it if that is due; the generation with its effort and recall."""
        passages = self._shelf.passages(generation)
        rows, indexed = passages.coverage()
        if rows < WARRANTED:
            return self._note(generation, 0, 1.0, rows) if generation.effort else generation
        if indexed and generation.effort and rows < _GROWN * generation.measured:
            return generation
        passages.index_vectors()
        effort, recall = self._choose(generation, passages)
        return self._note(generation, effort, recall, rows)

    def _choose(self, generation: Generation, passages: Passages) -> tuple[int, float]:
        """The least effort that finds `GOOD_RECALL`, else the most; and what it finds."""
        asked = passages.sample(ASKED)
        exact = [_nearest(passages, hit, exact=True) for hit in asked]
        effort, recall = 0, 1.0
        for effort in passages.efforts:
            quick = self._shelf.passages(replace(generation, effort=effort))
            recall = measure_recall([_nearest(quick, hit) for hit in asked], exact)
            if recall >= GOOD_RECALL:
                break
        return effort, recall

    def _note(self, generation: Generation, effort: int, recall: float, rows: int) -> Generation:
        noted = replace(generation, effort=effort, recall=recall, measured=rows)
        self._shelf.note_search(noted)
        return noted


def measure_recall(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> float:
    """The share of the exactly nearest that was found, over all questions; 1.0 where there was nothing to find."""
    wanted = sum(len(one) for one in exact)
    hits = sum(len({*one} & {*true}) for one, true in zip(found, exact, strict=True))
    return hits / wanted if wanted else 1.0


def _nearest(passages: Passages, asked: Hit, exact: bool = False) -> list[str]:
    """Ids of the nearest passages, without the one that is asked for."""
    hits = passages.search_dense(asked.vector.tolist(), NEAREST + 1, exact=exact)
    return [hit.passage.id for hit in hits if hit.passage.id != asked.passage.id][:NEAREST]
