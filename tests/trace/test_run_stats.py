"""One run in the numbers that figures of many are made of."""

from dataclasses import replace

import pytest

from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.steps import Step, StepState, Usage
from crag_core.base.types.web import WebOutcome
from crag_core.trace.reroute import carried_out, reroute
from crag_core.trace.summary import Ending, measure
from crag_core.trace.trace import Trace
from tests.builders import grade, graded, policy, searched, strips_of, trace, web_page

NEWS = web_page("w1", "Fares rose in May.")


def taken(*scores: float | None, name: str = "paper", **more: object) -> Trace:
    """A run with its decision and corrections, as the pipeline records them."""
    found, grades = graded(*scores)
    strips: tuple[Strip, ...] = sum((strips_of(one, (one.text, 0.9)) for one in found), ())
    run = trace(policy(name), **{"passages": found, "grades": grades, "strips": strips, "context": ()} | more)
    routed = reroute(run, run.settings.policy)
    return replace(run, decision=routed.decision, corrections=carried_out(run, routed))


def test_a_run_that_went_well() -> None:
    steps = (
        Step("retrieve", "", seconds=0.25),
        Step("grade", "", seconds=0.5, usage=Usage(2, 100, 20)),
        Step("search", "", seconds=0.125),
        Step("assemble", "", seconds=0.25),
        Step("answer", "", seconds=2.0, usage=Usage(1, 50, 10)),
    )
    run = measure(taken(0.9, 0.2, None, steps=steps), at=12.5)
    assert (run.at, run.ending, run.action, run.policy) == (12.5, Ending.DONE, Action.CORRECT, "paper")
    assert (run.decided_ms, run.retrieval_ms, run.provider_ms, run.total_ms) == (750, 1125, 125, 3125)
    assert (run.graded, run.ungraded, run.cached) == (2, 1, 0)
    assert (run.calls, run.prompt_tokens, run.completion_tokens) == (3, 150, 30)
    assert (run.score, run.improved, run.searched) == (0.9, None, False)


def test_grades_of_the_web_and_from_the_cache_count() -> None:
    unread = Grade("w1", None, raw="?", cause="no score", from_cache=True)
    run = measure(taken(0.5, web=searched(NEWS), web_grades=(unread,)), at=0)
    assert (run.graded, run.ungraded, run.cached, run.searched) == (1, 1, 1, True)


def test_what_was_taken_over_is_counted_where_it_was_done() -> None:
    steps = (
        Step("grade", "", seconds=0.5, usage=Usage(2, 100, 20), taken_over=True),
        Step("grade web", ""),
        Step("answer", "", seconds=2.0, usage=Usage(1, 50, 10)),
    )
    web = {"web": searched(NEWS), "web_grades": (Grade("w1", 0.9),)}
    run = measure(taken(0.5, 0.4, **web, steps=steps), at=0)
    assert (run.graded, run.calls, run.prompt_tokens, run.completion_tokens) == (1, 1, 50, 10)
    assert run.total_ms == 2500, "the time is that of the record"
    again = (*steps, Step("grade", "another round"))
    assert measure(taken(0.5, 0.4, **web, steps=again), at=0).graded == 3


@pytest.mark.parametrize(
    ("state", "ending"),
    [(StepState.STOPPED, Ending.STOPPED), (StepState.FAILED, Ending.FAILED), (StepState.WAITING, Ending.WAITING)],
)
def test_how_it_ended(state: StepState, ending: Ending) -> None:
    assert measure(taken(0.9, steps=(Step("search", "", state),)), at=0).ending is ending


@pytest.mark.parametrize("outcome", [WebOutcome.OFF, WebOutcome.COOLING, WebOutcome.PENDING, WebOutcome.REFUSED])
def test_a_search_that_was_not_made_is_none(outcome: WebOutcome) -> None:
    assert not measure(taken(0.5, web=replace(searched(), outcome=outcome)), at=0).searched


def test_a_search_that_the_cache_answered_asked_no_provider() -> None:
    assert not measure(taken(0.5, web=replace(searched(NEWS), from_cache=True)), at=0).searched


@pytest.mark.parametrize("outcome", [WebOutcome.USED, WebOutcome.EMPTY, WebOutcome.FAILED, WebOutcome.TIMED_OUT])
def test_a_search_that_was_made_counts_whatever_came(outcome: WebOutcome) -> None:
    assert measure(taken(0.5, web=replace(searched(), outcome=outcome)), at=0).searched


def with_web(*scores: float | None, web_score: float | None) -> Trace:
    web = searched(NEWS, strips=strips_of(NEWS, (NEWS.text, 0.9)))
    return taken(*scores, web=web, web_grades=(grade("w1", web_score),))


def test_the_best_score_rose_where_better_evidence_was_found() -> None:
    assert measure(with_web(0.1, 0.2, web_score=0.9), at=0).improved is True
    assert measure(with_web(0.1, 0.2, web_score=0.2), at=0).improved is False
