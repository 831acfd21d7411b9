"""A second evaluator for the chunks in doubt: who is asked, what it costs, what counts, and what reroute says."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest
from llama_index.core.schema import NodeWithScore, TextNode

from crag_core.base.errors import BadRecord, ModelUnavailable
from crag_core.base.types import ANSWERING, TOPICAL, Action, Grade, SecondGrade, StepName
from crag_core.decision.policy import Policy, SecondOpinion
from crag_core.decision.policy_file import parse_policy
from crag_core.decision.second_opinion import counted, in_doubt, on_first_scale, second_text
from crag_core.decision.stability import stability
from crag_core.evaluators.policies import OWN_JUDGE
from crag_core.llamaindex.parts import evaluator_of
from crag_core.llamaindex.postprocessor import CRAGPostprocessor
from crag_core.pipeline.call_budget import budget
from crag_core.pipeline.run import Run, WebMode
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from crag_core.view.path.run_path import run_path
from tests import builders
from tests.fakes import QUESTION, USEFUL, USELESS, Bench, FakeEvaluator, by_id, card, passage, passages
from tests.policy_files import PAPER, paper_with

SECOND = card("llm", calls_model=True)  # lower 0.4, upper 0.6


def doubting(name: str = "paper", low: float = 0.3, high: float = 0.7, **changes: object) -> Policy:
    own = replace(builders.policy(name), second_opinion=SecondOpinion("llm", (low, high)), **changes)
    return own.with_thresholds(0.2, 0.65)


def bench(policy: Policy, second: FakeEvaluator, **scores: float | None) -> tuple[Bench, Trace]:
    made = Bench(policy=policy, scoring=by_id(**scores))
    return made, made.under(parts={"second_evaluator": second}).run(QUESTION)


def told(trace: Trace) -> str:
    """What the path says of the grades."""
    return run_path(trace, reroute(trace, trace.settings.policy)).stage("grade").detail


def test_only_chunks_in_the_band_are_asked_about_and_every_call_is_counted() -> None:
    second = FakeEvaluator(by_id(p1=0.9, p2=0.2), SECOND)
    made, trace = bench(doubting(), second, p1=0.5, p2=0.3, p3=0.1)
    assert second.graded == ["p1", "p2"]
    assert trace.decision is not None and trace.decision.action is Action.CORRECT
    step = next(step for step in trace.steps if step.name == StepName.SECOND_READING)
    assert step.usage.calls == 2 and step.summary == "2 of 3 chunks by Llm"
    promised = budget(doubting(), made.judge, 3, writer=False, searches=True, second=SECOND)[Action.CORRECT]
    assert promised.least <= trace.usage.calls <= promised.most == 3
    assert Trace.from_dict(trace.to_dict()) == trace


def test_nobody_is_asked_where_a_chunk_above_the_band_is_correct_already() -> None:
    second = FakeEvaluator(by_id(p1=0.9), SECOND)
    bench(doubting(), second, p1=0.5, p2=0.9, p3=0.1)
    assert second.asked == []


def test_an_outage_of_the_second_leaves_the_first_score_and_the_run_goes_on() -> None:
    second = FakeEvaluator(by_id(), SECOND)

    def fail() -> None:
        raise ModelUnavailable("The model is away.")

    second.before = fail
    _, trace = bench(doubting(), second, p1=0.5, p2=0.1, p3=0.1)
    assert trace.decision is not None and trace.decision.action is Action.AMBIGUOUS and trace.failure is None
    assert told(trace) == "by Fake. Second opinion: 0 of 3 chunks by Llm; first score kept for 1: The model is away."


def test_a_stopped_reading_goes_on_where_it_was() -> None:
    second = FakeEvaluator(by_id(**{f"p{n}": 0.9 for n in range(1, 7)}), SECOND)
    made = Bench(policy=doubting(), best=0.5, found=passages(6))
    engine, run = made.under(parts={"second_evaluator": second}), Run()
    second.before = lambda: run.cancel.set() if len(second.asked) == 2 else None
    stopped = engine.run(QUESTION, run)
    assert second.graded == ["p1", "p2", "p3", "p4", "p5", "p6"] and stopped.is_unfinished
    assert told(stopped).endswith("4 of 6 chunks by Llm; first score kept for 2: stopped by you after 4 of 6 chunks")
    second.asked.clear()
    whole = engine.resume(Trace.from_dict(stopped.to_dict()))
    assert second.graded == ["p5", "p6"], "what was read already is not asked for again"
    assert made.counts["grade"] == 6 and whole.usage.calls == 6
    assert whole.failure is None and told(whole) == "by Fake. Second opinion: 6 of 6 chunks, by Llm"


def test_without_a_language_model_the_first_scores_stay_and_the_path_says_so() -> None:
    made = Bench(policy=doubting(), best=0.5, web=WebMode.OFF)
    trace = made.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.decision.score == 0.5 and trace.usage.calls == 0
    assert told(trace) == "by Fake. Second opinion: no language model to ask; first scores kept"
    second = FakeEvaluator(by_id(p1=0.9, p2=0.9, p3=0.9), SECOND)
    engine = made.under(parts={"second_evaluator": second})
    again = engine.resume(engine.adopt(trace))
    assert made.counts["grade"] == 3 and told(again).endswith("3 of 3 chunks, by Llm"), "the first grades are kept"


def test_an_unreadable_reply_leaves_the_first_score_of_its_chunk() -> None:
    second = FakeEvaluator(by_id(p1=0.9, p2=None), SECOND)
    _, trace = bench(doubting(), second, p1=0.5, p2=0.5, p3=0.1)
    assert told(trace) == "by Fake. Second opinion: 1 of 3 chunks, by Llm; first score kept for 1"


@pytest.mark.parametrize("title", ["Language model", ""])
def test_a_second_score_names_its_evaluator_by_title_or_in_an_old_record_by_name(title: str) -> None:
    grade = Grade("p1", 0.5, second=SecondGrade("llm", 0.4, 0.6, 1.0, title=title))
    assert second_text(doubting(), grade) == f"second opinion by {title or 'llm'}: 1.00, counts as 1.00"


def test_two_real_evaluators_read_one_after_the_other_without_a_model() -> None:
    traces: list[Trace] = []
    own = replace(
        doubting(low=0.0, high=1.0), evaluator="heuristic", second_opinion=SecondOpinion(OWN_JUDGE, (0.0, 1.0))
    )
    given = [
        NodeWithScore(node=TextNode(id_=one.id, text=one.text), score=0.5) for one in (passage(1), passage(2, USELESS))
    ]
    CRAGPostprocessor(own, "heuristic", on_trace=traces.append).postprocess_nodes(given, query_str=QUESTION)
    (trace,) = traces
    alone = evaluator_of(OWN_JUDGE, None).grade(QUESTION, trace.passages or (), Event())
    seconds = [grade.second for grade in trace.grades or () if grade.second]
    assert [second.score for second in seconds] == pytest.approx([grade.score for grade in alone])
    assert [second.parts for second in seconds] == [grade.parts for grade in alone]
    best = max(on_first_scale(own, second) for second in seconds)
    assert trace.decision is not None and trace.decision.score == pytest.approx(best) and trace.usage.calls == 0
    assert told(trace) == "by Heuristic. Second opinion: 2 of 2 chunks, by Trained evaluator"


def test_a_postprocessor_without_a_language_model_keeps_the_first_scores() -> None:
    traces: list[Trace] = []
    asking = replace(doubting(low=0.0, high=1.0), evaluator="heuristic")
    given = [NodeWithScore(node=TextNode(id_="n1", text=USEFUL), score=0.5)]
    CRAGPostprocessor(asking, "heuristic", on_trace=traces.append).postprocess_nodes(given, query_str=QUESTION)
    assert told(traces[0]) == "by Heuristic. Second opinion: no language model to ask; first scores kept"


def test_reroute_counts_recorded_readings_at_the_thresholds_in_force_and_tells_what_is_missing() -> None:
    second = FakeEvaluator(by_id(p1=0.9), SECOND)
    _, trace = bench(doubting(), second, p1=0.5, p2=0.1, p3=0.1)
    second.asked.clear()
    higher = reroute(trace, doubting().with_thresholds(upper=0.95))
    assert higher.decision.score == pytest.approx(0.95 + 0.05 * 0.75) and Missing.SECOND_OPINION not in higher.missing
    wider = doubting(low=0.05)
    assert Missing.SECOND_OPINION in reroute(trace, wider.with_thresholds(upper=0.95)).missing
    other = replace(doubting(), second_opinion=SecondOpinion("llm-batch", (0.3, 0.7)))
    changed = reroute(trace, other)
    assert changed.decision.action is Action.AMBIGUOUS and Missing.SECOND_OPINION in changed.missing
    assert second.asked == []
    graded = replace(trace, settings=replace(trace.settings, policy=doubting()))
    stable = stability(doubting(), graded.passages or (), graded.grades)
    assert (stable.upper.below, stable.upper.above) == (None, None)


def test_a_record_from_before_second_opinions_loads_and_keeps_its_fingerprint() -> None:
    trace = Bench(best=0.9).pipeline.run(QUESTION)
    old = trace.to_dict()
    del old["settings"]["policy"]["second_opinion"]
    for grade in old["grades"]:
        del grade["second"]
    assert Trace.from_dict(old) == trace and Trace.from_dict(old).fingerprint == trace.fingerprint


@pytest.mark.parametrize(
    ("score", "counts"), [(0.0, 0.0), (0.2, 0.1), (0.4, 0.2), (0.5, 0.425), (0.6, 0.65), (0.8, 0.825), (1.0, 1.0)]
)
def test_the_second_scale_is_mapped_piece_by_piece_onto_the_thresholds(score: float, counts: float) -> None:
    assert on_first_scale(doubting(), SecondGrade("llm", 0.4, 0.6, score)) == pytest.approx(counts)


def test_of_two_signals_the_second_replaces_answering_alone() -> None:
    first = Grade("p1", 0.5, parts=((ANSWERING, 0.5), (TOPICAL, 0.9)), second=SecondGrade("llm", 0.4, 0.6, 1.0))
    found = counted(doubting("two-signal"), first)
    assert found.two_signals == (1.0, 0.9) and found.score == 0.5
    outside = doubting("two-signal", low=0.6, high=0.7)
    assert counted(outside, first) is first and in_doubt(outside, passages(1), (first,)) == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{ evaluator = "llm", band = [0.8, 0.4] }', "0 <= low < high <= 1"),
        ('{ evaluator = "embedding", band = [0.4, 0.8] }', "another evaluator"),
        ('{ evaluator = "llm", bands = [0.4, 0.8] }', "unknown key"),
    ],
)
def test_a_wrong_second_opinion_is_refused_with_what_was_expected(value: str, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        parse_policy(paper_with("refine_web", f"second_opinion = {value}\nrefine_web"), "paper")
    assert parse_policy(PAPER, "paper").second_opinion is None
