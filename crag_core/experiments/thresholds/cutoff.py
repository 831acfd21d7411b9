"""Recall and precision of a sentence cut-off on sentences with known answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crag_core.experiments.labelled.scored import Case
from crag_core.experiments.thresholds.threshold_board import Array

KEPT = 0.95
"""Of the sentences that answer: what a good cut-off keeps."""


@dataclass(frozen=True, eq=False)
class SentenceCurve:
    """By cut-off, in hundredths from 0 to 1: the share of the characters, and of the sentences with an answer, that
    score above it. `best` is the highest cut-off that keeps `KEPT` of the answers, 0 where none does."""

    cutoffs: Array
    text: Array
    answers: Array
    sentences: int
    best: float


def sentence_curve(cases: Sequence[Case]) -> SentenceCurve | None:
    """None where no scored sentence holds an answer, or all do. One without a score is dropped by every cut-off."""
    strips = [strip for case in cases for strip in case.scored.strips or ()]
    answering = np.array([strip.answers for strip in strips], dtype=bool)
    if not answering.any() or answering.all():
        return None
    scores = np.array([-1.0 if strip.score is None else strip.score for strip in strips])
    lengths = np.array([strip.length for strip in strips], dtype=float)
    cutoffs = np.round(np.linspace(0, 1, 101), 2)
    above = scores[:, None] > cutoffs
    text = (above * lengths[:, None]).sum(axis=0) / lengths.sum()
    answers = above[answering].mean(axis=0)
    enough = np.flatnonzero(answers >= KEPT)
    return SentenceCurve(cutoffs, text, answers, len(strips), float(cutoffs[enough[-1]]) if enough.size else 0.0)
