"""Reciprocal-rank fusion of rankings, and of passages within a token budget."""

import math
from collections.abc import Sequence

from crag_core.base.text.words import estimate_tokens
from crag_core.base.types.passages import Passage

# The constant of Cormack, Clarke and Büttcher 2009, doi:10.1145/1571941.1572114.
RRF_K = 60


def fuse_ranks(rankings: Sequence[Sequence[str]], k: int = RRF_K) -> dict[str, float]:
    """Reciprocal-rank fusion: each ranking gives its n-th entry (from 1) 1 / (k + n). In order of first appearance."""
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, 1):
            shares.setdefault(id_, []).append(1.0 / (k + rank))
    # Exact sums: the same ranks in another order must tie.
    return {id_: math.fsum(found) for id_, found in shares.items()}


def fuse(rankings: Sequence[Sequence[Passage]], limit: int, token_budget: int | None) -> tuple[Passage, ...]:
    """The passages of several retrievals, best fused rank first; ties in order of first appearance.

    Passages with the same id, or the same text but for white space, are one: the first that appears stands for all of
    them, with its own scores, and a ranking counts only the best place of it. At most `limit` are taken; one that does
    not fit into what is left of `token_budget` is left out and the next one tried (description 000), but the best one
    always goes in.
    """
    kept, keyed = _merge(rankings)
    fused = fuse_ranks(keyed)
    taken: list[Passage] = []
    left = math.inf if token_budget is None else token_budget
    for id_ in sorted(fused, key=fused.__getitem__, reverse=True):
        tokens = estimate_tokens(kept[id_].text)
        if len(taken) < limit and (tokens <= left or not taken):
            taken.append(kept[id_])
            left -= tokens
    return tuple(taken)


def _merge(rankings: Sequence[Sequence[Passage]]) -> tuple[dict[str, Passage], list[list[str]]]:
    kept: dict[str, Passage] = {}
    same_id: dict[str, str] = {}
    same_text: dict[str, str] = {}
    keyed = []
    for ranking in rankings:
        ids: dict[str, None] = {}
        for passage in ranking:
            text = "".join(passage.text.split())
            id_ = same_id.get(passage.id) or same_text.get(text) or passage.id
            same_id.setdefault(passage.id, id_)
            same_text.setdefault(text, id_)
            kept.setdefault(id_, passage)
            ids[id_] = None
        keyed.append(list(ids))
    return kept, keyed
