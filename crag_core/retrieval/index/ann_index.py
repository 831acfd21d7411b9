"""Decides when an approximate vector index pays, and its search effort, by measured recall."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from crag_core.base.documents import IndexVersion
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends.backend import Hit, Passages
from crag_core.retrieval.index.index_writer import IndexWriter

WARRANTED = 50_000
"""From so many passages on comparing with every one takes too long; below, the search is exact."""
GOOD_RECALL, GOOD_WORST = 0.98, 0.9
"""The recall to be reached, on average and for the worst tenth of the queries."""
ASKED, NEAREST = 100, 20
"""So many passages are taken as queries, and so many of the nearest to each are looked for."""
_GROWN = 1.5
"""The index is rebuilt when there are so many times as many passages as when its recall was measured."""
_log = logging.getLogger(__name__)


def try_refresh(index_writer: IndexWriter) -> None:
    """For the current version; a failure costs time at the next question, and nothing else."""
    try:
        refresh(index_writer, index_writer.versions.current())
    except StoreUnavailable as fault:
        _log.warning("the index for approximate search could not be built: %s", fault)


def refresh(index_writer: IndexWriter, version: IndexVersion) -> IndexVersion:
    """Build the index and measure its recall if that is due; the version with its effort and recall.

    Only recording these needs the lock.
    """

    def record(effort: int, recall: float, measured: int) -> IndexVersion:
        recorded = replace(version, effort=effort, recall=recall, measured=measured)
        index_writer.record_search(recorded)
        return recorded

    passages = index_writer.passages(version)
    rows, indexed = passages.coverage()
    if rows < WARRANTED:
        return record(0, 1.0, 0) if version.measured else version
    has_grown = rows >= _GROWN * version.measured
    is_lost = version.effort and not indexed
    if not has_grown and not is_lost and not passages.is_worn():
        return version
    passages.index_vectors()
    if not passages.coverage()[1]:  # the engine cannot index vectors of this length
        return record(0, 1.0, rows)
    return record(*_choose_effort(index_writer, version, passages), rows)


def _choose_effort(index_writer: IndexWriter, version: IndexVersion, passages: Passages) -> tuple[int, float]:
    """The least effort that reaches the recall, else the most; and its recall."""
    queries = passages.sample(ASKED)
    exact = [_nearest(passages, hit, exact=True) for hit in queries]
    effort, recall = 0, 1.0
    for effort in passages.efforts:
        approximate = index_writer.passages(replace(version, effort=effort))
        recalls = sorted(measure_recalls([_nearest(approximate, hit) for hit in queries], exact))
        recall = fmean(recalls) if recalls else 1.0
        worst = recalls[len(recalls) // 10] if recalls else 1.0
        if recall >= GOOD_RECALL and worst >= GOOD_WORST:
            break
    return effort, recall


def measure_recalls(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> list[float]:
    """Of each query: the share of the exactly nearest that was found; 1.0 where there was nothing to find."""
    return [len({*one} & {*true}) / len(true) if true else 1.0 for one, true in zip(found, exact, strict=True)]


def _nearest(passages: Passages, query: Hit, exact: bool = False) -> list[str]:
    """Ids of the nearest passages, without the query itself."""
    hits = passages.search_dense(query.vector.tolist(), NEAREST + 1, exact=exact)
    return [hit.passage.id for hit in hits if hit.passage.id != query.passage.id][:NEAREST]
