"""The verdict in one line, and what would change it."""

from __future__ import annotations

import operator

from hypothesis import example, given
from hypothesis import strategies as st

from crag_core.evaluators.policies import plain_rag
from crag_core.view.run_view import RunView, view_run
from crag_core.view.score_words import STEP, bound
from crag_core.view.verdict_lines import Chip, chip, flip_lines, no_flip, notes
from tests.builders import graded, policy, trace, twice


def of_scores(*scores: float | None, name: str = "paper") -> RunView:
    found, grades = graded(*scores)
    return view_run(trace(policy(name), passages=found, grades=grades))


def test_the_verdict_says_what_it_judges_and_why() -> None:
    made = of_scores(0.9).routed.decision
    assert chip(made, made.reason) == Chip("Retrieval: CORRECT", "Best chunk 0.90 ≥ upper 0.60")
    own = of_scores(0.9, 0.8, 0.7, name="agentic").routed.decision
    assert chip(own, own.reason) == Chip("Retrieval: CORRECT · Generate", "Mean of 3 kept chunks 0.80 ≥ upper 0.70")


def test_plain_rag_judges_no_retrieval() -> None:
    found, _ = graded(0.5)
    plain = view_run(trace(plain_rag(), passages=found))
    assert chip(plain.routed.decision, "") == Chip("Not graded", "Chunks used as retrieved")
    assert no_flip(plain) == "No threshold is looked at."


def test_what_flips_stands_in_one_line_a_threshold() -> None:
    assert flip_lines(of_scores(0.52)) == ("CORRECT if upper ≤ 0.52", "INCORRECT if lower > 0.52")
    assert flip_lines(of_scores(0.6)) == ("AMBIGUOUS if upper > 0.60",)
    assert flip_lines(of_scores(0.5999))[0] == "CORRECT if upper ≤ 0.599", "else 0.60 would look enough"
    found, grades = twice((0.31, 0.82))
    two = view_run(trace(policy("two-signal"), passages=found, grades=grades))
    assert flip_lines(two) == ("CORRECT if answer bar ≤ 0.31", "INCORRECT if subject bar > 0.82")


HOLDS = {"<": operator.lt, "≤": operator.le, ">": operator.gt, "≥": operator.ge}


@given(relation=st.sampled_from(sorted(HOLDS)), at=st.floats(0, 1) | st.integers(0, 1000).map(lambda n: n / 1000))
@example(relation=">", at=0.5102)
@example(relation="≤", at=0.145)
def test_a_bound_says_the_same_of_every_place_of_a_mark(relation: str, at: float) -> None:
    shown, value = bound(relation, at).split()
    assert len(value) <= 5
    for n in range(201):
        place = round(n * STEP, 9)
        if abs(place - at) > 1e-8 or place == at:
            assert HOLDS[shown](place, float(value)) == HOLDS[relation](place, at)


def test_only_plain_rag_misses_no_grade() -> None:
    found, grades = graded(0.9, None)
    run = trace(policy("paper"), passages=found, grades=grades)
    assert "1 of 2 chunks not graded" in str(notes(view_run(run)))
    assert "not graded" not in str(notes(view_run(run, plain_rag())))
