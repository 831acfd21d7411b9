"""Which steps each action takes, in which order, and how often each part is asked."""

from typing import Any

import pytest

from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.grades import Grade
from crag_core.base.types.steps import StepState
from crag_core.pipeline.pipeline import FIRST, ITERATION, LAST, REFINING, SEARCHING
from crag_core.pipeline.run import Run, WebMode
from tests.fakes import ANSWER, QUESTION, WEB_QUERY, Bench, Diary, FakeModel, card, lanes, passage, passages

SHORT = ["retrieve", "grade", "route", "score strips", "assemble", "answer"]
LONG = ["retrieve", "grade", "route", "score strips", "grade web", "assemble", "answer"]
WITH_WEB = {"retrieve": 1, "grade": 3 + 2, "strips": 6 + 2, "search": 1, "phrases": 1, "answer": 1}
WITHOUT_WEB = {"retrieve": 1, "grade": 3, "strips": 6, "answer": 1}

PAPER = [
    pytest.param(0.9, Action.CORRECT, (SHORT, []), WITHOUT_WEB, id="CORRECT"),
    pytest.param(0.5, Action.AMBIGUOUS, (LONG, ["rewrite", "search"]), WITH_WEB, id="AMBIGUOUS"),
    pytest.param(0.1, Action.INCORRECT, (LONG, ["rewrite", "search"]), WITH_WEB, id="INCORRECT"),
]


@pytest.mark.parametrize(("best", "action", "steps", "counts"), PAPER)
def test_paper_takes_these_steps_and_calls_with_a_model(
    best: float, action: Action, steps: tuple[list[str], list[str]], counts: dict[str, int]
) -> None:
    bench = Bench(best=best, model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.answer is not None
    assert trace.decision.action is action
    assert lanes(trace) == steps
    assert {step.state for step in trace.steps} == {StepState.DONE}
    assert bench.counts == counts
    assert trace.usage.calls == counts.get("phrases", 0) + counts["answer"]
    assert (trace.answer.text, trace.answer.state) == (ANSWER, AnswerState.COMPLETE)


def test_listener_hears_every_stage_and_the_finished_steps_in_order() -> None:
    bench, diary = Bench(best=0.5, model=FakeModel()), Diary()
    trace = bench.pipeline.run(QUESTION, Run(diary))
    stages = {name for name, _ in (*FIRST, *ITERATION, *REFINING, *SEARCHING, *LAST)}
    every = stages - {"judge together", "classify", "consolidate"}
    assert sorted(diary.begun) == sorted([*every, "answer", "check answer"]), "each stage of this policy begins once"
    assert tuple(diary.done) == trace.steps
    assert diary.traces[-1] == trace
    assert "".join(diary.pieces).strip() == ANSWER
    assert diary.progress == [("grade", 3, 3)]


def test_settings_reach_retriever_searcher_and_query() -> None:
    bench = Bench(best=0.5, model=(model := FakeModel()), top_k=2)
    bench.pipeline.run(QUESTION)
    assert bench.retriever.asked == [(QUESTION, 2)]
    assert bench.searcher.asked == [(WEB_QUERY, 5)]
    assert "at most 3 short key phrases" in dict(model.asked)["phrases"][0][1]


LONG_ONES = tuple(passage(n, "A ferry leaves at nine. " * 34) for n in range(1, 21))


@pytest.mark.parametrize("name", ["worst-chunk", "rank-weighted"])
def test_as_they_are_means_all_of_them(name: str) -> None:
    bench = Bench(name, found=LONG_ONES, model=(model := FakeModel()))
    trace = bench.pipeline.run(QUESTION)
    assert len(trace.context or ()) == 20
    assert dict(model.asked)["answer"][1][1].count("A ferry leaves at nine.") == 20 * 34
    kept = next(one for one in trace.corrections or () if one.kind is CorrectionKind.KEEP)
    assert kept.reason == "use 20 chunks as they are"


@pytest.mark.parametrize(
    ("best", "web", "kinds"),
    [
        (0.9, WebMode.AUTO, ["refine", "generate"]),
        (0.5, WebMode.AUTO, ["refine", "rewrite", "web_search", "generate"]),
        (0.1, WebMode.AUTO, ["discard", "rewrite", "web_search", "generate"]),
        (0.1, WebMode.OFF, ["discard", "generate"]),
    ],
)
def test_what_was_really_done_is_recorded_with_its_query(best: float, web: WebMode, kinds: list[str]) -> None:
    trace = Bench(best=best, model=FakeModel(), web=web).pipeline.run(QUESTION)
    assert trace.corrections is not None
    assert [one.kind for one in trace.corrections] == kinds
    queries = {one.kind: one.query for one in trace.corrections}
    assert queries.get(CorrectionKind.REFINE, QUESTION) == QUESTION
    assert queries.get(CorrectionKind.WEB_SEARCH, WEB_QUERY) == WEB_QUERY
    found = [one.reason for one in trace.corrections if one.kind is CorrectionKind.WEB_SEARCH]
    assert all(reason.endswith("; 2 results") for reason in found)


# --- how many are graded --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("calls_model", "calls"), [(True, [4, 1]), (False, [8])])
def test_rank_weighted_has_a_model_grade_only_the_top_five(calls_model: bool, calls: list[int]) -> None:
    bench = Bench("rank-weighted", judge=card(calls_model=calls_model), found=passages(8))
    trace = bench.pipeline.run(QUESTION)
    assert [len(call) for call in bench.evaluator.asked] == calls
    assert trace.grades is not None and len(trace.grades) == sum(calls)
    assert trace.decision is not None and trace.decision.deciding == ("p1", "p2", "p3", "p4", "p5")


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        (passages(2), "few_context"),
        (tuple(passage(n, found_by=("dense",), scores=(("cosine", 0.85),)) for n in (1, 2, 3)), "high_vector_score"),
    ],
)
def test_agentic_fast_path_grades_nothing(found: Any, rule: str) -> None:
    bench = Bench("agentic", found=found, judge=card(calls_model=True))
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None
    assert (trace.decision.action, trace.decision.rule, trace.decision.score) == (Action.CORRECT, rule, 1.0)
    assert bench.evaluator.asked == []
    assert trace.grades is None, "never graded is None, not ()"
    assert (trace.steps[1].name, trace.steps[1].state) == ("grade", StepState.SKIPPED)
    assert rule in trace.steps[1].summary


def test_grades_may_carry_their_cause_and_reply_into_the_record() -> None:
    broken = Grade("p1", None, raw="Hm.", cause="the reply holds no score")
    trace = Bench(scoring=lambda p: broken if p.id == "p1" else 0.9).pipeline.run(QUESTION)
    assert trace.grade_of("p1") == broken
