"""`web = "when-few"`: the web is asked when refinement leaves something of too few chunks (description 002)."""

from dataclasses import replace

from crag_core.base.errors import EmbeddingUnavailable
from crag_core.base.types.decisions import Action, CorrectionKind, Handling
from crag_core.decision.policy import Policy
from crag_core.pipeline.call_budget import calls_needed
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, USELESS, Bench, FakeModel, card, changed, passage, step_names

WEAK = passage(3, USELESS)
"""Of this chunk no sentence scores above the cut-off."""
TWO_OF_THREE = (passage(1), passage(2), WEAK)
RANKED = changed("rank-weighted")


def handling(passages: Handling) -> Policy:
    return replace(RANKED, ambiguous=((passages.value, None), *RANKED.ambiguous[1:]))


def asked(bench: Bench) -> list[str]:
    return [query for query, _ in bench.searcher.asked]


def test_the_web_is_asked_when_refinement_leaves_something_of_fewer_than_three_chunks() -> None:
    bench = Bench(RANKED, best=0.5, found=TWO_OF_THREE, model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.decision.action is Action.AMBIGUOUS
    assert asked(bench) == [QUESTION] and trace.decision.web_below is None
    (search,) = [one for one in trace.corrections or () if one.kind is CorrectionKind.WEB_SEARCH]
    assert search.reason == "only 2 of at least 3 chunks are left after refinement, up to 5 results; 2 results"
    assert trace.context == ("p1#0", "web-1", "web-2"), "one sentence, which both chunks hold, and both results"
    names = step_names(trace)
    assert names.index("score strips") < names.index("rewrite") and names.count("route") == 1
    assert trace.decision == reroute(trace, trace.settings.policy).decision
    assert reroute(trace, trace.settings.policy).missing == ()
    assert Trace.from_json(trace.to_json()) == trace


def test_sentences_that_a_model_extracts_count_where_it_refines() -> None:
    bench = Bench(handling(Handling.EXTRACT), best=0.5, found=(passage(1), passage(2), passage(4)), model=FakeModel())
    trace = bench.pipeline.run(QUESTION)  # which extracts nothing, although three chunks score above the cut-off
    assert asked(bench) == [QUESTION] and trace.context == ("web-1", "web-2")
    without_model = Bench(handling(Handling.EXTRACT), best=0.5, found=(passage(1), passage(2), passage(4)))
    assert without_model.pipeline.run(QUESTION).web is None


def test_the_cut_off_decides_whether_the_web_is_asked() -> None:
    trace = Bench(RANKED, best=0.5, found=TWO_OF_THREE, model=FakeModel()).pipeline.run(QUESTION)
    searches = {
        cutoff: reroute(trace, RANKED.with_thresholds(cutoff=cutoff)).decision.wants(CorrectionKind.WEB_SEARCH)
        for cutoff in (0.05, 0.1, 0.5, 0.95)
    }
    assert searches == {0.05: False, 0.1: True, 0.5: True, 0.95: True}


def test_before_the_strips_are_scored_the_search_is_open_and_promised() -> None:
    bench = Bench(RANKED, best=0.5, found=TWO_OF_THREE, model=FakeModel(), judge=card(calls_model=True))

    def away(*_: object) -> None:
        raise EmbeddingUnavailable("The scorer cannot be loaded.", hint="Install it.")

    works, bench.strip_evaluator.before = bench.strip_evaluator.before, away
    broken = bench.pipeline.run(QUESTION)
    assert broken.failure is not None and broken.web is None and asked(bench) == []
    routed = reroute(broken, RANKED)
    assert routed.decision == broken.decision and routed.decision.web_below == 3
    assert not routed.decision.wants(CorrectionKind.WEB_SEARCH)
    assert "the web is asked if fewer than 3 chunks are left" in routed.decision.plan[0].reason
    assert {Missing.STRIPS, Missing.WEB} <= set(routed.missing)
    assert calls_needed(routed.missing, RANKED, 3, card(calls_model=True), writer=True) == 1, (
        "the answer; the question is sent as it is"
    )
    bench.strip_evaluator.before = works
    done = bench.pipeline.resume(Trace.from_json(broken.to_json()))
    assert done.failure is None and asked(bench) == [QUESTION]


def test_seconds_of_refining_and_searching_add_up_where_one_follows_the_other() -> None:
    trace = Bench(RANKED, best=0.5, found=TWO_OF_THREE, model=FakeModel()).pipeline.run(QUESTION)
    assert trace.seconds == sum(step.seconds for step in trace.steps)
