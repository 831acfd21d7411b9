"""One record under several evaluators: whose grades decide, and where they differ."""

from dataclasses import replace

from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Opinion
from crag_core.base.types.steps import Step, StepName
from crag_core.trace.opinions import decided_by, with_evaluator, with_grades, with_grades_of, with_opinion
from crag_core.trace.reroute import key_of, reroute
from crag_core.trace.trace import Trace
from crag_core.view.opinions import comparisons
from crag_core.view.run_view import view_run
from tests.builders import CARD, POLICIES, grade, graded, policy, searched, trace, web_page
from tests.made_up_runs import HEURISTIC, JUDGE

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
    web_grades=(grade("w1", 0.3),),
    web=searched(PAGE),
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
    assert swapped.web_grades == JUDGED.grades[3:]
    assert reroute(RUN, PAPER).decision.action is Action.CORRECT
    assert reroute(swapped, PAPER).decision.action is Action.AMBIGUOUS
    assert (swapped.id, swapped.passages, swapped.strips, swapped.answer) == (RUN.id, FOUND, RUN.strips, RUN.answer)


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


def test_steps_tell_whose_grades_decide_now() -> None:
    assert [step.name for step in by("llm").steps] == [SECOND_OPINION, GRADE, SECOND_OPINION]
    assert [step.name for step in by("heuristic").steps] == [SECOND_OPINION, SECOND_OPINION, GRADE]


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
        assert nobody.grades is None and nobody.web_grades is None
        assert Opinion(CARD, "extractive", (*GRADES, grade("w1", 0.3))) in nobody.opinions
        assert [step.name for step in nobody.steps] == [SECOND_OPINION] * 3
    assert JUDGED in with_grades_of(RUN, replace(judge, writer="ollama/llama")).opinions
    assert JUDGED not in with_grades_of(RUN, replace(judge, prompts="2")).opinions, "made with another prompt"
    assert JUDGED not in with_grades_of(RUN, replace(judge, evaluator=replace(JUDGE, version="2"))).opinions
    assert with_grades_of(RUN, replace(RUN.settings, prompts="2")).other_opinions == (OTHER,), "this one asks no model"


def test_grades_of_a_passage_that_is_gone_are_no_part_of_the_record() -> None:
    left = with_grades_of(replace(RUN, web=None), RUN.settings)
    assert [{one.passage_id for one in by.grades} & {"w1"} for by in left.opinions] == [set()] * 3


def test_a_further_opinion_takes_the_place_of_an_earlier_one_but_never_of_the_one_that_decides() -> None:
    again, anew = replace(JUDGED, grades=(grade("p1", 0.9),)), Opinion(replace(CARD, version="2"), "", ())
    assert with_opinion(RUN, again) == (*RUN.opinions[:2], again)
    assert with_opinion(RUN, anew) == (*RUN.opinions, anew)
    assert with_grades(RUN, (grade("w1", 0.9), grade("p2", 0.4)))[0].grades == (
        GRADES[0], grade("p2", 0.4), GRADES[2], grade("w1", 0.9),
    )  # fmt: skip


# --- where they differ ----------------------------------------------------------------------------------------------


def test_passages_are_told_with_both_grades_the_largest_gap_first() -> None:
    suited = lambda card: PAPER.with_thresholds(card.lower, card.upper)  # noqa: E731
    found = comparisons(view_run(RUN, PAPER), suited)[1]
    assert [row.gap for row in found.rows] == ["0.50", "0.40", "0.10", "–"]
    assert [cell.score for cell in found.rows[0].cells] == ["0.30", "0.80"], "the page of the web"
    assert [cell.score for cell in found.rows[-1].cells] == ["not graded", "0.40"]


def test_thresholds_of_a_weighted_sum_are_not_taken_for_those_of_a_passage() -> None:
    found, grades = graded(0.78, 0.25)
    of = policy("signals")
    (seen,) = comparisons(view_run(trace(of, passages=found, grades=grades, opinions=(JUDGED,)), of), lambda card: of)
    assert (CARD.lower, CARD.upper) == (0.20, 0.80) and of.upper == 0.7
    assert {row.cells[0].band for row in seen.rows if row.cells[0].band} == {Action.AMBIGUOUS}
