"""What a cut-off keeps of the text and of the sentences with an answer, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crag_core.experiments.labelled.graded import Case, StripFact
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.thresholds.threshold_board import sentence_curve
from tests.experiments.made_up_sets import case


def with_strips(*strips: StripFact) -> Case:
    found = case(1, Expected.CORRECT, 0.9)
    return replace(found, scored=replace(found.scored, strips=strips))


STRIPS = (
    StripFact(0.9, 10, True),
    StripFact(0.5, 20, True),
    StripFact(0.5, 30, False),
    StripFact(None, 40, False),
)


def test_shares_of_text_and_of_answers() -> None:
    found = sentence_curve([with_strips(*STRIPS)])
    assert found is not None and found.holding == 2
    for cutoff, text, answers in ((0.0, 0.6, 1.0), (0.49, 0.6, 1.0), (0.5, 0.1, 0.5), (0.9, 0.0, 0.0)):
        at = int(np.flatnonzero(found.cutoffs == cutoff)[0])
        assert (found.text[at], found.answers[at]) == (pytest.approx(text), answers)
    assert found.best == 0.49


def test_where_no_cut_off_keeps_enough_it_is_0() -> None:
    found = sentence_curve([with_strips(StripFact(None, 5, True), StripFact(0.9, 5, True), StripFact(0.1, 5, False))])
    assert found is not None and found.best == 0.0


@pytest.mark.parametrize("strips", [(), (StripFact(0.9, 5, True),), (StripFact(0.9, 5, False),)])
def test_without_both_kinds_there_is_nothing_to_draw(strips: tuple[StripFact, ...]) -> None:
    assert sentence_curve([with_strips(*strips)]) is None
    assert sentence_curve([case(1, Expected.CORRECT, 0.5)]) is None
