"""Measures of a ranked list: against trec_eval on random lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from crag_core.experiments.comparison import metrics

Lists = dict[str, tuple[list[int], list[int]]]
"""By query, the grades in the order of the list, and all known grades."""

OURS: dict[str, Callable[[Sequence[int]], float]] = {"Success": metrics.hit, "RR": metrics.reciprocal_rank}
LENGTHS = (1, 2, 5, 20)


def drawn(random: np.random.Generator, length: int, count: int = 500) -> Lists:
    """Lists of documents with grades 0, 1 and 2, some of them unjudged; and some known ones that were not found."""
    lists = {}
    for number in range(count):
        found = random.choice(3, size=length, p=random.dirichlet((2.0, 1.0, 1.0))).tolist()
        missed = random.choice(3, size=random.integers(0, 12)).tolist()
        if 2 in found + missed:
            lists[f"q{number}"] = (found, found + missed)
    return lists


@pytest.mark.parametrize("length", LENGTHS)
def test_every_measure_is_that_of_trec_eval(length: int) -> None:
    import ir_measures

    measures = {"Success": ir_measures.Success(rel=2), "RR": ir_measures.RR(rel=2)}
    random = np.random.default_rng(length)
    lists = drawn(random, length)
    qrels, run = [], []
    for query, (found, known) in lists.items():
        names = [f"d{place:03}" for place in random.permutation(len(known))]  # ids must tell nothing of ranks
        judged = [(name, grade) for name, grade in zip(names, known, strict=True) if grade or random.random() < 0.5]
        qrels += [ir_measures.Qrel(query, name, grade) for name, grade in judged]
        run += [ir_measures.ScoredDoc(query, name, -rank) for rank, name in enumerate(names[: len(found)])]
    theirs = {str(measure @ length): name for name, measure in measures.items()}
    compared = 0
    for metric in ir_measures.iter_calc([measure @ length for measure in measures.values()], qrels, run):
        ours = OURS[theirs[str(metric.measure)]](lists[metric.query_id][0])
        assert ours == pytest.approx(metric.value, abs=1e-9), (metric, lists[metric.query_id])
        compared += 1
    assert compared == len(measures) * len(lists) and len(lists) > 300
