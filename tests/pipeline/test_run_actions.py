"""Which steps each action takes, in which order, and how often each part is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Origin
from crag_core.base.types.steps import StepState, Usage
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Refinement, WebQuery
from crag_core.pipeline.pipeline import FIRST, ITERATION, LAST, REFINING, SEARCHING
from crag_core.pipeline.run import Run, WebMode
from tests.builders import policy
from tests.fakes import (
    ANSWER,
    QUESTION,
    USEFUL,
    USELESS,
    WEB_QUERY,
    Bench,
    Diary,
    FakeModel,
    by_id,
    card,
    changed,
    lanes,
    passage,
    passages,
    step_names,
)

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


@pytest.mark.parametrize(("best", "action", "steps", "counts"), PAPER)
def test_paper_makes_no_model_call_without_a_model(
    best: float, action: Action, steps: tuple[list[str], list[str]], counts: dict[str, int]
) -> None:
    bench = Bench(best=best)
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.answer is not None
    assert trace.decision.action is action
    assert lanes(trace) == steps
    assert bench.counts == {part: count for part, count in counts.items() if part not in ("phrases", "answer")}
    assert trace.usage == Usage()
    assert trace.answer.writer == "extractive"
    assert trace.answer.text


def test_each_action_answers_from_the_evidence_that_it_may_use() -> None:
    origins = {}
    for best in (0.9, 0.5, 0.1):
        trace = Bench(best=best, model=(model := FakeModel())).pipeline.run(QUESTION)
        assert trace.decision is not None
        prompt = model.asked[-1][1][1][1]
        origins[trace.decision.action] = ("in the morning" in prompt, "harbour office" in prompt)
        assert USELESS not in prompt, "a struck-out sentence reached the model"
    assert origins == {
        Action.CORRECT: (True, False),
        Action.AMBIGUOUS: (True, True),
        Action.INCORRECT: (False, True),
    }


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


PHRASES = "ferry Vennick, timetable of summer 2025, first departure, island line"


@pytest.mark.parametrize(
    ("form", "said", "sent", "by"),
    [
        (WebQuery.PHRASES, PHRASES, PHRASES.removesuffix(", island line"), "written by fake-model"),
        (WebQuery.REWRITTEN, f'Query: "{" ".join(["ferry"] * 12)}"', " ".join(["ferry"] * 12), "written by fake-model"),
        (WebQuery.QUESTION, "never asked", QUESTION, "the question as it is"),
    ],
)
def test_what_is_sent_to_the_web_is_the_policys_own_matter(form: WebQuery, said: str, sent: str, by: str) -> None:
    model = FakeModel(rewrite=said, phrases=said)
    bench = Bench(changed("paper", web_query=form), best=0.5, model=model)
    trace = bench.pipeline.run(QUESTION)
    assert bench.searcher.asked == [(sent, 5)]
    assert trace.web is not None and trace.web.query_by == by
    made = [one.query for one in trace.corrections or () if one.kind is CorrectionKind.REWRITE]
    assert made == ([] if form is WebQuery.QUESTION else [sent])
    assert model.kinds == {"phrases": ["phrases", "answer"], "rewritten": ["rewrite", "answer"]}.get(form, ["answer"])


def test_without_a_model_the_question_is_searched_as_it_is() -> None:
    bench = Bench(best=0.5)
    trace = bench.pipeline.run(QUESTION)
    assert bench.searcher.asked == [(QUESTION, 5)]
    assert trace.web is not None and trace.web.query_by == "the question as it is"
    assert CorrectionKind.REWRITE not in {one.kind for one in trace.corrections or ()}


LONG_ONES = tuple(passage(n, "A ferry leaves at nine. " * 34) for n in range(1, 21))


@pytest.mark.parametrize("name", ["worst-chunk", "rank-weighted"])
def test_as_they_are_means_all_of_them(name: str) -> None:
    bench = Bench(name, found=LONG_ONES, model=(model := FakeModel()))
    trace = bench.pipeline.run(QUESTION)
    assert len(trace.context or ()) == 20
    assert dict(model.asked)["answer"][1][1].count("A ferry leaves at nine.") == 20 * 34
    kept = next(one for one in trace.corrections or () if one.kind is CorrectionKind.KEEP)
    assert kept.reason == "use 20 chunks as they are"


def test_what_a_budget_of_the_policy_leaves_out_is_said() -> None:
    tight = replace(policy("worst-chunk"), refinement=Refinement(budget=1000))
    trace = Bench(tight, found=(*LONG_ONES[:-1], passage(20, "A ferry leaves at ten."))).pipeline.run(QUESTION)
    assert (trace.context or ("",))[-1].startswith("p20"), "a smaller chunk still fits"
    kept = next(one for one in trace.corrections or () if one.kind is CorrectionKind.KEEP)
    assert kept.reason == "use 5 of 20 chunks as they are: the token budget holds no more"
    assert (
        "The token budget of 1000 holds 5 of 20 chunks." in next(s for s in trace.steps if s.name == "assemble").summary
    )


def test_web_results_are_graded_and_their_strips_scored_by_the_same_parts() -> None:
    bench = Bench(best=0.5)
    trace = bench.pipeline.run(QUESTION)
    assert bench.evaluator.asked == [("p1", "p2", "p3"), ("web-1", "web-2")]
    assert trace.web is not None and trace.strips is not None
    assert trace.web.grades is not None and trace.web.strips is not None
    assert [grade.passage_id for grade in trace.web.grades] == ["web-1", "web-2"]
    assert {strip.passage_id for strip in trace.web.strips} == {"web-1", "web-2"}
    assert {strip.passage_id for strip in trace.strips} == {"p1", "p2", "p3"}
    assert all(passage.origin is Origin.WEB and passage.url for passage in trace.web.passages)


@pytest.mark.parametrize(
    ("policy", "calls_model", "judged"),
    [("paper", True, True), ("paper", False, True), ("worst-chunk", True, False), ("worst-chunk", False, True)],
)
def test_a_model_judges_web_results_only_where_the_policy_refines_them(
    policy: str, calls_model: bool, judged: bool
) -> None:
    bench = Bench(policy, best=0.1, judge=card(calls_model=calls_model))
    trace = bench.pipeline.run(QUESTION)
    assert trace.web is not None and trace.web.strips
    assert (trace.web.grades is not None) == judged, "never judged is None, not ()"
    assert ("web-1" in bench.evaluator.graded) == judged
    assert all(strip.score is not None for strip in trace.web.strips), "strips are scored without a model"


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


# --- nothing to go by -----------------------------------------------------------------------------------------------


def test_nothing_retrieved_goes_to_the_web_without_asking_the_judge() -> None:
    bench = Bench(found=(), model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None
    assert (trace.decision.action, trace.decision.reason) == (Action.INCORRECT, "nothing was retrieved")
    assert (trace.passages, trace.grades, trace.strips) == ((), (), ())
    assert bench.evaluator.asked == [("web-1", "web-2")]
    assert trace.steps[0].summary == "nothing found"


def test_nothing_retrieved_and_no_web_says_so_and_asks_no_model() -> None:
    bench = Bench(found=(), model=FakeModel(), web=WebMode.OFF)
    trace = bench.pipeline.run(QUESTION)
    assert trace.answer is not None
    assert (trace.answer.state, trace.answer.text) == (AnswerState.CANNOT_ANSWER, "")
    assert "nothing was retrieved" in trace.answer.message and "web search is off" in trace.answer.message
    assert trace.usage.calls == 0


@pytest.mark.parametrize("policy", ["paper", "worst-chunk", "rank-weighted", "agentic"])
def test_everything_ungraded_is_ambiguous_and_searches_nothing(policy: str) -> None:
    bench = Bench(policy, best=None)
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.grades is not None
    assert (trace.decision.action, trace.decision.score) == (Action.AMBIGUOUS, None)
    assert trace.decision.reason == "no chunk could be graded"
    assert [grade.score for grade in trace.grades] == [None, None, None]
    assert bench.counts["search"] == 0
    assert "3 not graded" in trace.steps[1].summary


def test_answer_that_the_model_declines_is_no_answer() -> None:
    trace = Bench(model=FakeModel(answer="CANNOT ANSWER.")).pipeline.run(QUESTION)
    assert trace.answer is not None
    assert trace.answer.state is AnswerState.CANNOT_ANSWER
    assert trace.answer.message.startswith("fake-model found no answer")


def test_empty_answer_is_no_answer() -> None:
    trace = Bench(model=FakeModel(answer="")).pipeline.run(QUESTION)
    assert trace.answer is not None and trace.answer.state is AnswerState.CANNOT_ANSWER


def test_all_strips_struck_out_ends_in_a_plain_no_without_a_model_call() -> None:
    bench = Bench(found=(passage(1, USELESS),), model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert trace.answer is not None
    assert trace.answer.state is AnswerState.CANNOT_ANSWER
    assert "the best scores 0.10" in trace.answer.message
    assert bench.counts["answer"] == 0


# --- how many are graded --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("calls_model", "calls"), [(True, [4, 1]), (False, [8])])
def test_rank_weighted_has_a_model_grade_only_the_top_five(calls_model: bool, calls: list[int]) -> None:
    bench = Bench("rank-weighted", judge=card(calls_model=calls_model), found=passages(8))
    trace = bench.pipeline.run(QUESTION)
    assert [len(call) for call in bench.evaluator.asked] == calls
    assert trace.grades is not None and len(trace.grades) == sum(calls)
    assert trace.decision is not None and trace.decision.deciding == ("p1", "p2", "p3", "p4", "p5")


def test_judge_that_calls_a_model_reports_progress_in_fours() -> None:
    bench, diary = Bench(judge=card(calls_model=True), found=passages(10)), Diary()
    trace = bench.pipeline.run(QUESTION, Run(diary))
    assert diary.progress == [("grade", 0, 10), ("grade", 4, 10), ("grade", 8, 10), ("grade", 10, 10)]
    assert trace.steps[1].usage == Usage(10, 100, 20)


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        (passages(2), "few_context"),
        (
            tuple(passage(n, found_by=("dense",), scores=(("cosine", 0.85),)) for n in (1, 2, 3)),
            "high_vector_score",
        ),
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


def test_agentic_grades_when_no_rule_matches() -> None:
    bench = Bench("agentic", judge=card(calls_model=True))
    bench.pipeline.run(QUESTION)
    assert bench.evaluator.graded == ["p1", "p2", "p3"]


def test_ungraded_passage_counts_as_the_policy_says() -> None:
    scoring = by_id(p1=None, p2=0.9, p3=0.9)
    paper = Bench("paper", scoring=scoring).pipeline.run(QUESTION)
    worst = Bench("worst-chunk", scoring=scoring).pipeline.run(QUESTION)
    assert paper.decision is not None and worst.decision is not None
    assert (paper.decision.action, paper.decision.score) == (Action.CORRECT, 0.9)
    assert (worst.decision.action, worst.decision.score) == (Action.AMBIGUOUS, 0.5)
    assert paper.grades is not None and paper.grades[0].score is None


def test_grades_may_carry_their_cause_and_reply_into_the_record() -> None:
    broken = Grade("p1", None, raw="Hm.", cause="the reply holds no score")
    trace = Bench(scoring=lambda p: broken if p.id == "p1" else 0.9).pipeline.run(QUESTION)
    assert trace.grade_of("p1") == broken


def test_begin_with_passages_retrieves_nothing() -> None:
    bench = Bench()
    trace = bench.pipeline.resume(bench.pipeline.begin(QUESTION, passages(2)))
    assert bench.retriever.asked == []
    assert step_names(trace) == SHORT[1:]
    assert dict(trace.signals)["keyword_overlap"] > 0


def test_correct_stops_short_of_the_answer() -> None:
    bench = Bench(model=FakeModel())
    trace = bench.pipeline.correct(bench.pipeline.begin(QUESTION))
    assert step_names(trace) == SHORT[:-1]
    assert trace.answer is None
    *pieces, finished = bench.pipeline.stream_answer(trace)
    assert "".join(str(piece) for piece in pieces).strip() == ANSWER
    assert not isinstance(finished, str)
    assert step_names(finished) == SHORT
    assert finished.answer is not None and finished.answer.text == ANSWER


def test_context_names_the_strips_that_the_answer_saw() -> None:
    trace = Bench().pipeline.run(QUESTION)
    # The useful sentence stands in all three passages and is used once.
    assert trace.context == ("p1#0",)
    assert trace.answer is not None and trace.answer.text == f"“{USEFUL}” [1]"


def test_web_used_is_told_with_its_provider() -> None:
    trace = Bench(best=0.1).pipeline.run(QUESTION)
    assert trace.web is not None and trace.web.outcome is WebOutcome.USED
    step = next(step for step in trace.steps if step.name == "search")
    assert step.summary == "2 results for “When does the ferry to Vennick leave?” from Fake search"
