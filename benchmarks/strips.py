"""How well scores pick the sentences that answer: which one comes first, and what a cut-off keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contenders import Column
from benchmarks.measures import Estimate, ratio, share
from benchmarks.sets import Task
from benchmarks.tables import Cell

KEPT = 0.95
"""Of the sentences that answer: what a good cut-off keeps."""


def measure_strips(column: Column, task: Task, cutoff: float | None, *, alone: bool = False) -> dict[str, Cell]:
    """Over texts with a sentence that answers and one that does not; `cutoff` None: no cut-off ships for this score.

    `alone`: only where one sentence answers. The words of an answer may stand in others that answer nothing.

    As in a run, a strip is kept when it scores above the cut-off; what could not be graded is struck out.
    """
    texts = [
        (np.nan_to_num(scores, nan=-1.0), answers, lengths)
        for scores, question in zip(column, task.questions, strict=True)
        if (answers := np.array([label == "answer" for label in question.labels], dtype=bool)).any()
        and (answers.sum() == 1 or not alone)
        and not answers.all()
        and (lengths := np.array([len(passage.text) for passage in question.passages])).any()
    ]
    if not texts:
        return {}
    row: dict[str, Cell] = {
        "texts": str(len(texts)),
        "answer first": share(sum(_first(scores, answers) for scores, answers, _ in texts), len(texts)),
    }
    row["cut-off"] = cutoff
    if cutoff is not None:
        row |= {"answers kept": _answers_kept(texts, cutoff), "text kept": _text_kept(texts, cutoff)}
    wanted = find_cutoff(np.concatenate([scores[answers] for scores, answers, _ in texts]))
    row |= {f"cut-off for {KEPT:.0%}": wanted, "text kept then": _text_kept(texts, wanted)}
    return row


def find_cutoff(scores: np.ndarray[Any, Any]) -> float:
    """The highest cut-off, three decimals, with at least `KEPT` of `scores` above it; 0 when there is none."""
    for step in range(999, -1, -1):
        if (scores > step / 1000).mean() >= KEPT:
            return step / 1000
    return 0.0


def _first(scores: np.ndarray[Any, Any], answers: np.ndarray[Any, Any]) -> float:
    """1 when an answer has the best score; among equals, the chance to draw one."""
    return float(answers[scores == scores.max()].mean())


def _answers_kept(texts: list[Any], cutoff: float) -> Estimate | None:
    return ratio(
        [int((answers & (scores > cutoff)).sum()) for scores, answers, _ in texts],
        [int(answers.sum()) for _, answers, _ in texts],
    )


def _text_kept(texts: list[Any], cutoff: float) -> Estimate | None:
    return ratio(
        [int(lengths[scores > cutoff].sum()) for scores, _, lengths in texts],
        [int(lengths.sum()) for _, _, lengths in texts],
    )
