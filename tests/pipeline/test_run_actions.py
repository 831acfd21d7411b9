"""Which steps each action takes, in which order, and how often each part is asked."""

from __future__ import annotations

from typing import Any

import pytest

from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.steps import StepState
from crag_core.pipeline.run import WebMode
from tests.fakes import (
    ANSWER,
    QUESTION,
    USELESS,
    WEB_QUERY,
    Bench,
    FakeModel,
    card,
    lanes,
    passage,
    passages,
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
