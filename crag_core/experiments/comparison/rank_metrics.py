"""Metrics of one ranked list, as `trec_eval` defines them: hit, precision, recall, MRR, nDCG.

A grade is 0 (not relevant), 1 (related) or 2 (answers). For hit, precision, recall and reciprocal rank a document
counts that answers; nDCG takes the grades as gains. The list is measured as long as it is. `known` holds the grades of
all documents that are known to be related or to answer, found or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

ANSWERS = 2
"""The grade of what answers."""


def hit(ranked: Sequence[int]) -> float:
    """1 where any of them answers, else 0."""
    return float(any(grade >= ANSWERS for grade in ranked))


def precision(ranked: Sequence[int]) -> float:
    """The share that answers; 0 of nothing."""
    return sum(grade >= ANSWERS for grade in ranked) / len(ranked) if ranked else 0.0


def recall(ranked: Sequence[int], known: Sequence[int]) -> float:
    """The share of what answers that was found; ValueError where nothing is known to answer."""
    wanted = sum(grade >= ANSWERS for grade in known)
    if not wanted:
        raise ValueError("expected at least one known document that answers, found none")
    return sum(grade >= ANSWERS for grade in ranked) / wanted


def reciprocal_rank(ranked: Sequence[int]) -> float:
    """1 over the rank of the first that answers, 0 where none does; its mean is the MRR."""
    return next((1.0 / rank for rank, grade in enumerate(ranked, start=1) if grade >= ANSWERS), 0.0)


def ndcg(ranked: Sequence[int], known: Sequence[int]) -> float:
    """Discounted gain over that of the best list of the same length (Järvelin & Kekäläinen 2002, ACM TOIS 20(4)).

    ValueError where nothing is known to be related.
    """
    best = _gain(sorted(known, reverse=True)[: len(ranked)])
    if not any(known):
        raise ValueError("expected at least one known document that is related, found none")
    return _gain(ranked) / best if best else 0.0


def _gain(grades: Sequence[int]) -> float:
    return math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))
