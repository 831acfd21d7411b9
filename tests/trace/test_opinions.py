"""One record under several evaluators: whose grades decide, and where they differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import EvaluatorCard, Opinion
from crag_core.base.types.steps import Step, StepName, StepState
from crag_core.decision.policy import Policy
from crag_core.trace.edits import edited
from crag_core.trace.opinions import (
    Disagreement,
    decided_by,
    disagreement,
    rank_correlation,
    with_evaluator,
    with_grades_of,
)
from crag_core.trace.reroute import key_of, reroute
from crag_core.trace.trace import Trace
from crag_core.view.run_view import view_run
from tests.builders import CARD, POLICIES, even, grade, graded, policy, searched, trace, twice, web_page
from tests.made_up_runs import HEURISTIC, JUDGE, edits_of, facts

GRADE, SECOND_OPINION = StepName.GRADE, StepName.SECOND_OPINION

PAPER = policy("paper")
PAGE = web_page("w1", "Fares rose.")
FOUND, GRADES = graded(0.9, 0.1, None)
JUDGED = Opinion(JUDGE, "ollama/qwen", (grade("p1", 0.5), grade("p2", 0.2), grade("p3", 0.4), grade("w1", 0.8)))
OTHER = Opinion(HEURISTIC, "extractive", (grade("p1", 0.7),))
RUN = trace(
    PAPER,
    passages=FOUND,
    grades=GRADES,
    web=replace(searched(PAGE), grades=(grade("w1", 0.3),)),
    opinions=(OTHER, JUDGED),
    steps=(
        Step(GRADE, "2 of 3 chunks graded", by=CARD.name),
        Step(SECOND_OPINION, "4 of 4 chunks graded", by=JUDGE.name),
        Step(SECOND_OPINION, "1 of 4 chunks graded", by=HEURISTIC.name),
    ),
)


def by(name: str, run: Trace = RUN) -> Trace:
    found = with_evaluator(run, name)
    assert found is not None
    return found


# --- whose grades decide --------------------------------------------------------------------------------------------


def test_the_grades_of_another_evaluator_decide_as_its_own_run_would() -> None:
    swapped = by("llm")
    assert swapped.settings.evaluator == JUDGE
    assert swapped.grades == JUDGED.grades[:3]
    assert swapped.web is not None and swapped.web.grades == JUDGED.grades[3:]
    assert reroute(RUN, PAPER).decision.action is Action.CORRECT
    assert reroute(swapped, PAPER).decision.action is Action.AMBIGUOUS
    assert (swapped.id, swapped.passages, swapped.strips, swapped.answer) == (RUN.id, FOUND, RUN.strips, RUN.answer)


def test_the_model_of_a_judge_goes_with_its_grades() -> None:
    assert by("llm").settings.writer == "ollama/qwen"
    assert by("heuristic").settings.writer == RUN.settings.writer == "extractive"


def test_the_evaluator_before_becomes_an_opinion_and_the_way_back_is_the_same() -> None:
    swapped = by("llm")
    assert swapped.opinions == (OTHER, Opinion(CARD, "extractive", (*GRADES, grade("w1", 0.3))))
    assert by("hand", swapped) == RUN
    assert by("heuristic", swapped).opinions[0] == JUDGED


def test_the_main_evaluator_gives_the_record_itself_and_an_unknown_one_nothing() -> None:
    assert with_evaluator(RUN, "hand") is RUN
    assert with_evaluator(RUN, "hand", "any model, it asks none") is RUN
    assert with_evaluator(RUN, "cross-encoder") is None
    assert with_evaluator(RUN, "") is None


def test_an_evaluator_that_has_graded_nothing_decides_by_nobodys_grades() -> None:
    assert decided_by(RUN, CARD, "extractive") is RUN
    assert decided_by(RUN, JUDGE, "ollama/qwen") == decided_by(RUN, JUDGE, "ollama/another") == by("llm")
    other = decided_by(RUN, replace(CARD, name="embedding", title="Embedding similarity"), "extractive")
    assert other.settings.evaluator.name == "embedding" and other.grades is None
    assert by("hand", other).grades == GRADES, "and the way back is there"
    for of in map(policy, POLICIES):
        view = view_run(other, of)
        needs_grades = bool(view.routed.decision_path.ungraded)
        assert view.is_decided is not needs_grades
        assert view.not_graded_by == ("Not graded by Embedding similarity yet" if needs_grades else "")
        assert view.routed.answer is None or view.is_decided
    key = key_of(other, reroute(other, PAPER).decision, reroute(other, PAPER).knowledge)
    answer = Answer("Nine.", AnswerState.COMPLETE, "ollama/qwen", key)
    assert reroute(replace(other, answer=answer), PAPER).answer is None, "though it was written from just this"


def test_opinions_of_one_judge_by_two_models_are_told_apart() -> None:
    other = replace(JUDGED, writer="ollama/llama", grades=(grade("p1", 0.1),))
    run = replace(RUN, opinions=(JUDGED, other))
    assert by("llm", run).settings.writer == "ollama/qwen"
    chosen = with_evaluator(run, "llm", "ollama/llama")
    assert chosen is not None and chosen.grades == other.grades
    assert with_evaluator(run, "llm", "ollama/gemma") is None
    again = with_evaluator(chosen, "llm", "ollama/qwen")
    assert again is not None and again.settings.writer == "ollama/qwen"


def test_an_opinion_without_the_web_leaves_its_results_ungraded() -> None:
    swapped = by("heuristic")
    assert swapped.web is not None and swapped.web.grades is None
    assert by("hand", swapped) == RUN


def test_an_opinion_of_the_web_alone_leaves_the_passages_ungraded() -> None:
    run = replace(RUN, opinions=(replace(JUDGED, grades=JUDGED.grades[3:]),))
    assert by("llm", run).grades is None


def test_a_run_that_graded_nothing_leaves_no_opinion() -> None:
    run = replace(RUN, grades=None, web=None)
    assert by("llm", run).opinions == (OTHER,)
    assert by("llm", replace(run, passages=(), opinions=(replace(JUDGED, grades=()),))).grades == ()


def test_steps_tell_whose_grades_decide_now() -> None:
    assert [step.name for step in by("llm").steps] == [SECOND_OPINION, GRADE, SECOND_OPINION]
    assert [step.name for step in by("heuristic").steps] == [
        SECOND_OPINION,
        SECOND_OPINION,
        GRADE,
    ]


def test_a_step_of_nobody_or_of_another_evaluator_keeps_its_name() -> None:
    steps = (
        Step(GRADE, "not needed, rule few_context", StepState.SKIPPED),
        Step(SECOND_OPINION, "3 of 3 chunks graded", by="llm-batch"),
        Step(SECOND_OPINION, "3 of 3 chunks graded", by=JUDGE.name),
    )
    run = replace(RUN, steps=steps)
    assert [step.name for step in by("llm", run).steps] == [GRADE, SECOND_OPINION, GRADE]
    assert by("hand", by("llm", run)) == run


def test_in_records_of_schema_4_the_words_of_a_step_told_who_graded() -> None:
    said = (f"2 of 3 chunks graded by {CARD.title.lower()}", f"4 of 4 chunks graded by {JUDGE.title.lower()}, 2 from")
    before = replace(RUN, steps=(Step(GRADE, said[0]), Step(SECOND_OPINION, said[1]), Step("retrieve", "graded by no")))
    read = Trace.from_dict(before.to_dict() | {"schema": 4})
    assert [step.by for step in read.steps] == [CARD.name, JUDGE.name, ""]


def test_a_record_is_judged_under_settings_by_whom_it_holds() -> None:
    judge = replace(RUN.settings, evaluator=JUDGE, writer="ollama/qwen")
    assert with_grades_of(RUN, RUN.settings) == RUN
    assert with_grades_of(RUN, judge) == by("llm")
    for other in (
        replace(judge, writer="ollama/llama"),
        replace(judge, prompts="2"),
        replace(judge, evaluator=replace(JUDGE, version="2")),
    ):
        nobody = with_grades_of(RUN, other)
        assert nobody.grades is None and nobody.web is not None and nobody.web.grades is None
        assert Opinion(CARD, "extractive", (*GRADES, grade("w1", 0.3))) in nobody.opinions
        assert [step.name for step in nobody.steps] == [SECOND_OPINION] * 3
    assert JUDGED in with_grades_of(RUN, replace(judge, writer="ollama/llama")).opinions
    assert JUDGED not in with_grades_of(RUN, replace(judge, prompts="2")).opinions, "made with another prompt"
    assert JUDGED not in with_grades_of(RUN, replace(judge, evaluator=replace(JUDGE, version="2"))).opinions
    assert with_grades_of(RUN, replace(RUN.settings, prompts="2")).opinions == (OTHER,), "this one asks no model"


@pytest.mark.slow
@given(st.data())
def test_there_and_back_is_the_same_and_edits_can_come_before_or_after(data: st.DataObject) -> None:
    of = data.draw(facts(whole=True))
    run = of.record()
    if of.results == ():
        run = replace(run, web=None)  # nobody grades no results: () and None are alike then
    run = replace(run, edits=data.draw(edits_of(of.ids)))
    for name in ("llm", "heuristic"):
        swapped = by(name, run)
        assert by("hand", swapped) == run
        name = data.draw(st.sampled_from(POLICIES))
        assert reroute(by(swapped.settings.evaluator.name, edited(run)), policy(name)) == reroute(swapped, policy(name))


# --- where they differ ----------------------------------------------------------------------------------------------


def suited(card: EvaluatorCard) -> Policy:
    return PAPER if card == CARD else PAPER.with_thresholds(card.lower, card.upper)


def compared(run: Trace = RUN, name: str = "llm") -> Disagreement:
    return next(one for one in disagreement(run, suited) if one.other.evaluator.name == name)


def test_a_record_without_opinions_has_nothing_to_disagree_about() -> None:
    assert disagreement(replace(RUN, opinions=()), suited) == ()


def test_passages_are_told_with_both_grades_the_largest_gap_first() -> None:
    found = compared()
    assert [row.passage.id for row in found.rows] == ["w1", "p1", "p2", "p3"]
    assert [row.gap and round(row.gap, 9) for row in found.rows] == [0.5, 0.4, 0.1, None]
    assert found.rows[-1].grades == (GRADES[2], JUDGED.grades[2])
    assert found.compared == 3


def test_each_evaluator_is_judged_by_thresholds_that_suit_it() -> None:
    found = compared()
    assert (found.main.decision.action, found.other.decision.action) == (Action.CORRECT, Action.AMBIGUOUS)
    assert (found.main.policy.lower, found.other.policy.lower) == (0.4, 0.3)
    assert {row.passage.id: row.bands for row in found.rows} == {
        "w1": (Action.INCORRECT, Action.CORRECT),
        "p1": (Action.CORRECT, Action.AMBIGUOUS),
        "p2": (Action.INCORRECT, Action.INCORRECT),
        "p3": (None, Action.AMBIGUOUS),
    }
    assert found.apart == 2, "a chunk that one of them has not graded is in no other band"


def test_what_an_evaluator_has_not_graded_is_counted() -> None:
    found = compared(name="heuristic")
    assert (found.main.ungraded, found.other.ungraded) == (0, 2)
    assert [row.passage.id for row in found.rows] == ["p1", "p2", "p3", "w1"]


def test_bands_are_those_of_one_passage_under_any_policy() -> None:
    for name in POLICIES:
        of = policy(name)
        run = trace(of, passages=FOUND, grades=GRADES, signals=even(0.6), opinions=(JUDGED,))
        (found,) = disagreement(run, lambda card, of=of: of)
        bands = {row.passage.id: row.bands[0] for row in found.rows}
        assert bands == {"p1": Action.CORRECT, "p2": Action.INCORRECT, "p3": None}, name


def test_thresholds_of_a_weighted_sum_are_not_taken_for_those_of_a_passage() -> None:
    found, grades = graded(0.78, 0.25)
    run = trace(policy("signals"), passages=found, grades=grades, opinions=(JUDGED,))
    (seen,) = disagreement(run, lambda card: policy("signals"))
    assert (CARD.lower, CARD.upper) == (0.20, 0.80) and policy("signals").upper == 0.7
    assert {row.bands[0] for row in seen.rows if row.passage.id in ("p1", "p2")} == {Action.AMBIGUOUS}


def test_one_score_has_no_variance_that_could_promote_it() -> None:
    promoting = replace(policy("rank-weighted"), low_variance_promotes=True)
    run = trace(promoting, passages=FOUND[:1], grades=(grade("p1", 0.6),), opinions=(JUDGED,))
    (seen,) = disagreement(run, lambda card: promoting)
    assert seen.rows[0].bands[0] is Action.AMBIGUOUS


def test_two_signals_band_a_passage_by_both() -> None:
    found, grades = twice((0.1, 0.9), (0.7, 0.2), (0.1, 0.1))
    run = trace(policy("two-signal"), passages=found, grades=grades, opinions=(JUDGED,))
    (seen,) = disagreement(run, lambda card: policy("two-signal"))
    bands = {row.passage.id: row.bands[0] for row in seen.rows}
    assert bands == {"p1": Action.AMBIGUOUS, "p2": Action.CORRECT, "p3": Action.INCORRECT}


def test_what_is_dropped_is_left_out_and_what_is_pinned_is_shown_by_the_facts() -> None:
    found = compared(replace(RUN, edits=Edits(("w1",), ("p2",))))
    assert [row.passage.id for row in found.rows] == ["p1", "p2", "p3"]
    assert found.rows[1].grades == (GRADES[1], JUDGED.grades[1])
    assert found.other.decision.action is Action.CORRECT, "the pin counts for what each leads to"


def test_a_run_without_grades_of_its_own_is_compared_all_the_same() -> None:
    found = compared(replace(RUN, grades=None, web=None))
    assert (found.compared, found.apart, found.correlation) == (0, 0, None)
    assert (len(found.rows), found.main.ungraded) == (3, 3)


def test_grades_of_passages_that_are_not_there_make_no_row() -> None:
    run = replace(RUN, opinions=(replace(JUDGED, grades=(*JUDGED.grades, grade("p99", 0.9))),))
    assert "p99" not in [row.passage.id for row in compared(run).rows]


def test_the_correlation_is_that_of_what_both_graded() -> None:
    assert compared().correlation == pytest.approx(1 / 3), (
        "(0.9, 0.5), (0.1, 0.2), (0.3, 0.8): two pairs alike, one not"
    )
    assert compared(name="heuristic").correlation is None


@pytest.mark.parametrize(
    ("pairs", "tau"),
    [
        ([], None),
        ([(0.5, 0.5)], None),
        ([(0.5, 0.1), (0.5, 0.9)], None),
        ([(0.1, 0.2), (0.3, 0.4)], 1.0),
        ([(0.1, 0.4), (0.3, 0.2)], -1.0),
        ([(0.1, 0.1), (0.2, 0.3), (0.3, 0.2)], 1 / 3),
        ([(0.1, 0.1), (0.1, 0.2), (0.2, 0.3)], 2 / (2 * 3) ** 0.5),
        # scipy.stats.kendalltau([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]).statistic
        ([(12, 1), (2, 4), (1, 7), (12, 1), (2, 0)], -0.4714045207910316),
    ],
)
def test_rank_correlation_is_kendalls_tau_b(pairs: list[tuple[float, float]], tau: float | None) -> None:
    assert rank_correlation(pairs) == (None if tau is None else pytest.approx(tau))


pairs_of_scores = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=8)


@given(pairs_of_scores)
def test_rank_correlation_lies_in_its_range_and_has_no_direction(pairs: list[tuple[float, float]]) -> None:
    tau = rank_correlation(pairs)
    assert tau is None or -1.0 - 1e-9 <= tau <= 1.0 + 1e-9
    assert rank_correlation([(b, a) for a, b in pairs]) == tau
    assert rank_correlation([(a, a) for a, _ in pairs]) in (None, pytest.approx(1.0))
