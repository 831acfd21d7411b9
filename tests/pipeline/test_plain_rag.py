"""Plain RAG on the whole way from question to answer: one retrieval, one answer, and nothing between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from llama_index.core.schema import QueryBundle

from crag_core.base.errors import ModelUnavailable
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import StepState, Usage
from crag_core.decision.policy import Refinement
from crag_core.evaluators.policies import plain_rag
from crag_core.observability.audit_log import find_events
from crag_core.pipeline.pipeline import raise_failure
from crag_core.pipeline.run import WebMode
from crag_core.storage.history.runs import columns_of
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import measure, summarize
from crag_core.trace.trace import Trace
from crag_core.view.path.run_path import run_path
from crag_core.view.record import settings_of
from crag_core.view.run_view import view_run
from crag_core.view.score_line import picture
from crag_core.view.verdict_lines import figures, headline
from tests import builders
from tests.fakes import ANSWER, QUESTION, USELESS, Bench, FakeModel, passage, passages, step_names
from tests.report.pages import page_of


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
    bounded = replace(plain_rag(), refinement=Refinement(budget=2048))
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


def test_no_verdict_is_told_of_it_in_summary_figures_history_and_audit_log() -> None:
    for found, decision in ((passages(3), "NOT_GRADED"), ((), "NOTHING_FOUND")):
        trace = plain(model=FakeModel(), found=found).pipeline.run(QUESTION)
        made, events = summarize(trace), [find_events(step, trace) for step in trace.steps]
        assert (made.decision, made.action, made.score, made.confidence) == (decision, "", None, None)
        assert (measure(trace, 0.0).action, measure(trace, 0.0).score, columns_of(trace)["action"]) == (None, None, "")
        assert made.chunk_actions == () and "CORRECT" not in str(events) and "fast_path_hit" not in str(events)


def test_the_view_of_it_names_no_action_and_draws_no_score() -> None:
    trace = plain(model=FakeModel()).pipeline.run(QUESTION)
    view = view_run(trace)
    assert headline(view.routed.decision) == "Not graded" and picture(view) is None
    assert [(one.name, one.value) for one in figures(view)] == [("Chunks used", "3 of 3")]
    stages = run_path(trace, view.routed)
    assert stages.stage("route").action is None and stages.stage("grade").headline == "not part of plain RAG"
    assert dict(settings_of(trace))["Chunks graded by"] == "nobody: plain RAG"
    text = " ".join(one.text for one in page_of(trace).soup.select("#verdict, #path, #scores, #passages"))
    assert "NOT GRADED" in text and "Plain RAG grades nothing" in text
    assert not [word for word in ("CORRECT", "decides", "Overall score", "from another action") if word in text]


def test_one_question_of_an_engine_is_asked_as_plain_rag() -> None:
    model = FakeModel()
    engine = Bench("worst-chunk", model=model, web=WebMode.AUTO, best=0.1).pipeline
    assert engine.without_correction().query(QUESTION).metadata["crag_summary"]["decision"] == "NOT_GRADED"
    assert model.kinds == ["answer"] and engine.settings.policy.name == "worst-chunk"
    node = engine.without_correction().retrieve(QueryBundle(QUESTION))[0]
    assert (node.node.metadata["crag_action"], node.score) == ("", None)


def test_the_same_record_under_a_policy_says_what_plain_rag_left_out() -> None:
    trace = plain(model=FakeModel()).pipeline.run(QUESTION)
    routed = reroute(trace, builders.policy("paper"))
    assert routed.decision.action is Action.AMBIGUOUS and routed.answer is None
    assert "grades: this run did not grade these chunks" in [str(missing) for missing in routed.missing]
