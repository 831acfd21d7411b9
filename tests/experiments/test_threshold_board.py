"""The arrays say what `decide` says, of every policy, at any thresholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.grades import EvaluatorCard
from crag_core.base.types.passages import Scores
from crag_core.decision.decide import decide
from crag_core.decision.policy import WebQuery
from crag_core.decision.signals import SUFFICIENCY
from crag_core.experiments.labelled.graded import Case, ScoredQuestion
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.thresholds.threshold_board import ACTIONS, AMBIGUOUS, CORRECT, INCORRECT, Board, grid
from tests.builders import CARD, POLICIES, changing, policy
from tests.experiments.made_up_sets import board, case, grade, passage
from tests.matrix import diagonal

AXIS = grid(6)
JUDGE = EvaluatorCard("llm", "Language model", "0 to 1", 0.3, 0.7, 0.5, True, "one call a chunk")
shares = st.integers(0, 20).map(lambda n: n / 20)


@st.composite
def found_cases(draw: st.DrawFn) -> Case:
    names = [f"p{place}" for place in range(draw(st.integers(0, 6)))]
    passages = tuple(passage(name, draw(shares), draw(st.sampled_from([("dense",), ("keyword",)]))) for name in names)
    two = draw(st.booleans())
    grades = [
        replace(
            grade(name, draw(shares | st.none()), (draw(shares), draw(shares)) if two else None),
            coarse=draw(st.sampled_from([None, False, True])),
        )
        for name in names
        if draw(st.integers(0, 5))
    ]
    measures = st.sets(st.sampled_from(["coherence", "agreement", SUFFICIENCY]))
    signals: Scores = tuple((name, draw(shares)) for name in draw(measures))
    asked = LabelledQuestion("Why?", draw(st.sampled_from(list(Expected))))
    return Case(
        asked, ScoredQuestion(asked.key, "run", passages, draw(st.sampled_from([tuple(grades), None])), signals)
    )


@pytest.mark.parametrize(("name", "promotes"), diagonal(POLICIES, [False, True]))
@given(found=st.lists(found_cases(), min_size=1, max_size=5))
@settings(max_examples=6, deadline=None)
def test_every_cell_is_what_decide_says(name: str, promotes: bool, found: list[Case]) -> None:
    of = replace(policy(name).once_classified(), low_variance_promotes=promotes)
    seen = Board(of, found, CARD, writer=True)
    for lower in AXIS:
        uppers = np.array([upper for upper in AXIS if of.allows(lower, upper)])
        good, fair = seen.is_correct(lower, uppers), seen.reaches_lower(lower)
        for at, upper in enumerate(uppers):
            told = [
                decide(of.with_thresholds(lower, upper), one.scored.passages, one.scored.grades, one.scored.signals)
                for one in found
            ]
            taken = np.where(good[:, at], CORRECT, np.where(fair, AMBIGUOUS, INCORRECT))
            assert [ACTIONS[place] for place in taken] == [decision.action for decision in told]
            assert (taken == seen.actions(lower, upper)).all()


@pytest.mark.parametrize("name", POLICIES)
@given(found=found_cases())
@settings(max_examples=10, deadline=None)
def test_the_web_is_searched_where_the_decision_asks_for_it(name: str, found: Case) -> None:
    of = replace(policy(name), skip=())
    decision = decide(of, found.scored.passages, found.scored.grades, found.scored.signals)
    searched = bool(Board(of, [found], CARD, writer=True).web[0, ACTIONS.index(decision.action)])
    if decision.score is not None or decision.rule is None:
        assert searched is decision.wants(CorrectionKind.WEB_SEARCH)


@pytest.mark.parametrize("name", POLICIES)
@given(found=st.lists(st.tuples(found_cases(), st.booleans()), max_size=6))
@settings(max_examples=5, deadline=None)
def test_a_part_is_the_board_of_some_of_the_cases(name: str, found: list[tuple[Case, bool]]) -> None:
    cases, which = [one for one, _ in found], np.array([is_in for _, is_in in found], dtype=bool)
    cut = Board(policy(name), cases, JUDGE, writer=True).part(which)
    alone = Board(policy(name), [one for one, is_in in found if is_in], JUDGE, writer=True)
    assert cut.cases == alone.cases and len(cut) == which.sum()
    for lower, upper in ((0.2, 0.6), (0.5, 0.5)):
        assert np.array_equal(cut.actions(lower, upper), alone.actions(lower, upper))
    for table in ("expected", "answerable", "web", "calls", "ungraded"):
        assert np.array_equal(getattr(cut, table), getattr(alone, table))


def test_what_is_known_of_all_is_not_worked_out_for_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = board(*(case(n, Expected.CORRECT, n / 10) for n in range(10)))
    seen.actions()
    assert seen.web.any()

    def fail(*anything: object) -> None:
        raise AssertionError("worked out again")

    monkeypatch.setattr("crag_core.experiments.thresholds.threshold_board.evidence_of", fail)
    half = seen.part(np.arange(10) < 5)
    assert half.actions().tolist() == [INCORRECT] * 4 + [AMBIGUOUS] and half.web.shape == (5, 3)


def test_calls_are_those_of_the_budget_for_a_whole_run() -> None:
    seen = Board(policy("paper"), [case(1, Expected.CORRECT, 0.9, 0.1)], JUDGE, writer=True)
    # Two passages graded and the answer; with the web also the query and the grades of its five results.
    assert seen.calls.tolist() == [[3.0, 9.0, 9.0]]
    assert Board(policy("paper"), [case(1, Expected.CORRECT, 0.9)], CARD).calls.tolist() == [[0.0, 0.0, 0.0]]


def test_a_search_that_no_evidence_asks_for_costs_no_call() -> None:
    # AMBIGUOUS searches when fewer than three passages remain, and something is taken to be left of each: their
    # sentences are not scored here.
    of = changing(policy("rank-weighted"), web_query=WebQuery.REWRITTEN)
    many, few = case(1, Expected.CORRECT, 0.5, 0.5, 0.5), case(2, Expected.CORRECT, 0.5)
    seen = Board(of, [many, few], JUDGE, writer=True)
    ambiguous = ACTIONS.index(Action.AMBIGUOUS)
    assert seen.web[:, ambiguous].tolist() == [False, True]
    assert seen.calls[0, ambiguous] == 4 and seen.calls[1, ambiguous] == 3  # grading, the answer; and the query


def test_ungraded_means_a_passage_that_counts_without_a_score() -> None:
    seen = board(case(1, Expected.CORRECT, 0.9, None), case(2, Expected.CORRECT, 0.9, 0.1), case(3, Expected.CORRECT))
    assert seen.ungraded.tolist() == [True, False, False]
    top = replace(policy("paper"), top=1)
    assert not board(case(1, Expected.CORRECT, 0.9, None), of=top).ungraded[0]


def test_no_question_at_all() -> None:
    seen = board()
    assert len(seen) == 0 and seen.actions().shape == (0,) and seen.web.shape == (0, 3) and seen.calls.shape == (0, 3)
