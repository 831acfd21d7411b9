"""A run in one flat record: every field of description 000, and which corrections count."""

from dataclasses import replace

import pytest

from crag_core.base.types.steps import Step, Usage
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.trace.reroute import carried_out, reroute
from crag_core.trace.summary import Summary, summarize
from crag_core.trace.trace import Trace
from tests.builders import (
    even,
    grade,
    graded,
    passage,
    passages,
    policy,
    round_of,
    searched,
    strips_of,
    trace,
    web_page,
)

NEWS = web_page("w1", "Fares rose in May.")
CRITERIA = (("keyword_overlap", 0.5), ("coherence", 0.75), ("length_adequacy", 0.25), ("diversity", 1.0))


def finished(run: Trace) -> Trace:
    """The run with the corrections that were made, as the pipeline records them with the context."""
    return replace(run, corrections=carried_out(run, reroute(run, run.settings.policy)))


def ran(name: str, *scores: float | None, **more: object) -> Summary:
    found, grades = graded(*scores)
    signals = even(scores[0] or 0.0) if scores else ()
    return summarize(finished(trace(policy(name), **{"passages": found, "grades": grades, "signals": signals} | more)))


def test_every_field_of_a_partly_relevant_run() -> None:
    found = tuple(passage(f"p{n}", f"Text of chunk {n}.", source="one.txt") for n in (1, 2))
    made = round_of("expand", *found, passage("p3", "Text of chunk 3."))
    steps = (
        Step("retrieve", "", seconds=0.25),
        Step("grade", "", seconds=0.5, usage=Usage(2, 100, 20)),
        Step("assemble", "", seconds=0.25),
        Step("answer", "", seconds=9.0, usage=Usage(1, 50, 10)),
    )
    grades = tuple(replace(grade(p.id, 0.5), from_cache=True) for p in found)
    run = trace(policy("heuristic"), passages=found, grades=grades, signals=CRITERIA, rounds=(made,), steps=steps)
    assert summarize(finished(run)) == Summary(
        decision="PARTIAL",
        action="AMBIGUOUS",
        score=0.6375,  # 0.15 + 0.30 + 0.0375 + 0.15
        confidence=0.6375,
        correction_applied=True,
        strategy="query_expansion",
        original_count=2,
        final_count=3,
        tokens_used=15,  # three times four words, of five tokens
        web_used=False,
        cache_hit=True,
        keyword_overlap=0.5,
        coherence=0.75,
        length_adequacy=0.25,
        diversity=1.0,
        retrieval_ms=1000.0,
        model_calls=3,
        iterations=1,
        rule=None,
        doubtful=True,
        reason="weighted sum of signals 0.64 between lower 0.50 and upper 0.75",
    )


@pytest.mark.parametrize(
    ("name", "score", "decision", "action"),
    [
        ("heuristic", 0.9, "RELEVANT", "CORRECT"),
        ("heuristic", 0.6, "PARTIAL", "AMBIGUOUS"),
        ("heuristic", 0.1, "IRRELEVANT", "INCORRECT"),
        ("agentic", 0.9, "GENERATE", "CORRECT"),
        ("agentic", 0.5, "REFINE", "AMBIGUOUS"),
        ("agentic", 0.1, "RE_RETRIEVE", "INCORRECT"),
        ("paper", 0.5, "AMBIGUOUS", "AMBIGUOUS"),
    ],
)
def test_the_decision_has_the_name_that_the_policy_gives_it(
    name: str, score: float, decision: str, action: str
) -> None:
    found = ran(name, score, score, score)
    assert (found.decision, found.action) == (decision, action)


@pytest.mark.parametrize(
    ("name", "score", "made", "strategy"),
    [
        ("heuristic", 0.9, {}, "none"),
        ("heuristic", 0.6, {}, "none"),  # wanted, and not made
        ("heuristic", 0.6, {"rounds": (round_of("expand", passage("p9")),)}, "query_expansion"),
        ("heuristic", 0.1, {"web": searched(NEWS)}, "web_search"),
        ("heuristic", 0.1, {"web": searched()}, "none"),  # searched in vain: the passages are used after all
        ("paper", 0.9, {}, "refinement"),
        ("paper", 0.5, {"web": searched()}, "refinement"),
        ("signals", 0.5, {"web": searched(NEWS)}, "refinement+web_search"),
        ("worst-chunk", 0.1, {"web": WebSearch(WebOutcome.OFF, "", "")}, "none"),
        ("agentic", 0.1, {"rounds": (round_of("keyword", passage("p1")),)}, "re_retrieval"),
    ],
)
def test_strategies_are_the_corrections_that_were_made(
    name: str, score: float, made: dict[str, object], strategy: str
) -> None:
    found = ran(name, score, score, score, **made)
    assert (found.strategy, found.correction_applied) == (strategy, strategy != "none")
    assert found.web_used is ("web_search" in strategy)


def test_web_results_of_which_nothing_is_kept_are_not_used() -> None:
    strips = strips_of(NEWS, (NEWS.text, 0.1))
    found = ran("paper", 0.1, web=searched(NEWS, strips=strips))
    assert (found.web_used, found.strategy, found.final_count, found.tokens_used) == (False, "none", 0, 0)


@pytest.mark.parametrize(
    ("cached", "hit"), [((True, True), True), ((True, False), False), ((False, False), False), ((), False)]
)
def test_a_run_came_from_the_cache_when_all_of_its_grades_did(cached: tuple[bool, ...], hit: bool) -> None:
    found = passages(len(cached))
    grades = tuple(replace(grade(p.id, 0.9), from_cache=one) for p, one in zip(found, cached, strict=True))
    assert summarize(trace(policy("paper"), passages=found, grades=grades)).cache_hit is hit
