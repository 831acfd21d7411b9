"""Plain RAG on the whole way from question to answer: one retrieval, one answer, and nothing between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.types import Action, AnswerState, StepState, Usage
from crag_core.decision.policy import StripRules
from crag_core.evaluators.policies import plain_rag
from crag_core.pipeline.pipeline import raise_failure
from crag_core.pipeline.run import WebMode
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from tests import builders
from tests.fakes import ANSWER, QUESTION, USELESS, Bench, FakeModel, passage, passages, step_names


def plain(**options: Any) -> Bench:
    return Bench(plain_rag(), **options)


def test_it_retrieves_once_and_answers_once_and_asks_nobody_to_grade() -> None:
    model = FakeModel()
    bench = plain(model=model, best=0.0)
    trace = bench.pipeline.run(QUESTION)
    assert bench.counts["retrieve"] == 1 and model.kinds == ["answer"]
    assert bench.counts["grade"] == bench.counts["search"] == 0
    assert trace.decision is not None and trace.answer is not None
    assert (trace.decision.action, trace.decision.rule) == (Action.CORRECT, "always")
    assert trace.answer.text.strip() == ANSWER and trace.usage == Usage(1, 30, 7)
    assert trace.grades is None and trace.web is None and trace.rounds == ()
    raise_failure(trace)


def test_every_passage_reaches_the_answer_whole_with_the_useless_sentences_too() -> None:
    model = FakeModel()
    bench = plain(model=model, found=passages(20))
    trace = bench.pipeline.run(QUESTION)
    excerpts = reroute(trace, trace.settings.policy).knowledge.excerpts
    assert [excerpt.text for excerpt in excerpts] == [one.text for one in passages(20)]
    ((_, messages),) = model.asked
    assert messages[-1][1].count(USELESS) == 20


def test_long_passages_are_not_cut_where_a_policy_would_cut_them() -> None:
    found = tuple(passage(n, "A ferry leaves at nine. " * 34) for n in range(1, 21))
    bounded = replace(plain_rag(), strips=StripRules(token_budget=2048))
    policies = plain_rag(), bounded
    traces = [Bench(policy, found=found).pipeline.run(QUESTION) for policy in policies]
    counts = [len(reroute(trace, trace.settings.policy).knowledge.excerpts) for trace in traces]
    assert counts[0] == 20 > counts[1]


def test_without_a_model_it_quotes_without_grading_a_passage() -> None:
    bench = plain()
    trace = bench.pipeline.run(QUESTION)
    assert trace.answer is not None and trace.answer.state is AnswerState.COMPLETE
    assert bench.counts["grade"] == 0 and bench.counts["retrieve"] == 1


@pytest.mark.parametrize("web", list(WebMode))
def test_it_never_searches_the_web_not_even_where_nothing_was_found(web: WebMode) -> None:
    bench = plain(model=FakeModel(), found=(), web=web)
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.decision.action is Action.INCORRECT
    assert trace.decision.reason == "nothing was retrieved" and trace.web is None
    assert bench.counts == {"retrieve": 1}, "nobody is asked to answer from nothing"
    assert trace.answer is None or trace.answer.state is not AnswerState.COMPLETE


def test_a_model_that_is_away_breaks_it_off_at_the_answer() -> None:
    trace = plain(model=FakeModel(answer=ModelUnavailable("It is away."))).pipeline.run(QUESTION)
    assert trace.failure is not None and trace.failure.name == "answer"


def test_no_step_tells_of_a_grade() -> None:
    trace = plain(model=FakeModel()).pipeline.run(QUESTION)
    done = [name for name, step in zip(step_names(trace), trace.steps, strict=True) if step.state is StepState.DONE]
    assert done[0] == "retrieve" and "route" in done and "answer" in done
    assert not {"rewrite", "search", "extract", "retrieve again"} & set(done)
    told = next((step for step in trace.steps if step.name == "grade"), None)
    assert told is None or told.state is StepState.SKIPPED


def test_its_record_is_read_back_and_decided_the_same() -> None:
    trace = plain(model=FakeModel()).pipeline.run(QUESTION)
    again = Trace.from_json(trace.to_json())
    assert again == trace
    routed = reroute(again, again.settings.policy)
    assert routed.decision == trace.decision and routed.answer == trace.answer and routed.missing == ()


def test_the_same_record_under_a_policy_says_what_plain_rag_left_out() -> None:
    trace = plain(model=FakeModel()).pipeline.run(QUESTION)
    routed = reroute(trace, builders.policy("paper"))
    assert routed.decision.action is Action.AMBIGUOUS and routed.answer is None
    assert "grades: this run did not grade these chunks" in [str(missing) for missing in routed.missing]
