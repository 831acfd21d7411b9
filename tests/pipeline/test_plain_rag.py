"""Plain RAG on the whole way from question to answer: one retrieval, one answer, and nothing between."""

from typing import Any

from llama_index.core.schema import QueryBundle

from crag_core.base.errors import ModelUnavailable
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Usage
from crag_core.evaluators.policies import plain_rag
from crag_core.observability.audit_log import find_events
from crag_core.pipeline.pipeline import raise_failure
from crag_core.pipeline.run import WebMode
from crag_core.storage.history.runs import columns_of
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import measure, summarize
from tests import builders
from tests.fakes import ANSWER, QUESTION, Bench, FakeModel, passages


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


def test_no_verdict_is_told_of_it_in_summary_figures_history_and_audit_log() -> None:
    for found, decision in ((passages(3), "NOT_GRADED"), ((), "NOTHING_FOUND")):
        trace = plain(model=FakeModel(), found=found).pipeline.run(QUESTION)
        made, events = summarize(trace), [find_events(step, trace) for step in trace.steps]
        assert (made.decision, made.action, made.score, made.confidence) == (decision, "", None, None)
        assert (measure(trace, 0.0).action, measure(trace, 0.0).score, columns_of(trace)["action"]) == (None, None, "")
        assert made.chunk_actions == () and "CORRECT" not in str(events) and "fast_path_hit" not in str(events)


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


def test_a_model_that_is_away_breaks_it_off_at_the_answer() -> None:
    trace = plain(model=FakeModel(answer=ModelUnavailable("It is away."))).pipeline.run(QUESTION)
    assert trace.failure is not None and trace.failure.name == "answer"
