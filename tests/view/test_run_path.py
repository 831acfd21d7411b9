"""The path of a run as stages: what was taken, what it cost, what would be taken now, and why the rest was not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.protocols import WebReply
from crag_core.base.types.answers import Support
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Engine, Passage
from crag_core.base.types.steps import Step, Usage
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Policy
from crag_core.pipeline.run import Listener, Run, WebMode
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from crag_core.view.path.run_path import RunPath, run_path
from crag_core.view.path.stages import PLACES, Stage, StageState
from tests.builders import POLICIES, policy
from tests.fakes import QUESTION, WEB_QUERY, Bench, FakeModel, by_id, card, changed, passage, passages
from tests.matrix import diagonal

TAKEN, NOT_TAKEN, SKIPPED, WOULD_BE = StageState.TAKEN, StageState.NOT_TAKEN, StageState.SKIPPED, StageState.WOULD_BE
WEB = ("rewrite", "search", "grade_web")
STAGES = tuple(PLACES)[:-1]
ACTIONS = {0.9: Action.CORRECT, 0.5: Action.AMBIGUOUS, 0.1: Action.INCORRECT}
AWAY = ModelUnavailable("The model server is away.", hint="Start it.")


def told(trace: Trace, of: Policy | None = None, running: str | None = None) -> RunPath:
    return run_path(trace, reroute(trace, of or trace.settings.policy), running)


def asked(**bench: Any) -> Trace:
    return Bench(**bench).pipeline.run(QUESTION)


def states(found: RunPath, *names: str) -> list[StageState]:
    return [found[name].state for name in names or found]


def headlines(found: RunPath, *names: str) -> list[str]:
    return [found[name].headline for name in names]


def costs(found: RunPath) -> dict[str, tuple[int, float]]:
    return {name: (one.calls, one.seconds) for name, one in found.items() if one.seconds is not None}


# --- the three ways -------------------------------------------------------------------------------------------------


REFINED = {
    "retrieve": "3 chunks",
    "grade": "3 graded, best 0.90",
    "route": "overall 0.90",
    "refine": "1 of 6 sentences",
}
SEARCHED = {"rewrite": f"“{WEB_QUERY}”", "search": "2 results from Fake search", "grade_web": "1 of 2 sentences"}


@pytest.mark.parametrize(
    ("best", "untaken", "headlines"),
    [
        (0.9, ("again", *WEB), REFINED | {"answer": "by fake-model"} | dict.fromkeys(WEB, "not needed: CORRECT")),
        (0.5, ("again",), SEARCHED | {"assemble": "1 excerpt + 1 from the web", "again": "not asked: AMBIGUOUS"}),
        (0.1, ("again",), SEARCHED | {"refine": "3 chunks set aside", "assemble": "1 excerpt from the web"}),
    ],
)
def test_the_three_ways(best: float, untaken: tuple[str, ...], headlines: dict[str, str]) -> None:
    found = told(asked(best=best, model=FakeModel()))
    assert list(found) == list(STAGES)
    assert states(found) == [NOT_TAKEN if name in untaken else TAKEN for name in STAGES]
    assert {name: found[name].headline for name in headlines} == headlines
    route, refine = found["route"], found["refine"]
    assert (route.action, route.detail[:15]) == (ACTIONS[best], f"best chunk {best:.2f}")
    assert (refine.title, refine.leads_on) == (("Discard", False) if best == 0.1 else ("Refine", True))


# --- the web --------------------------------------------------------------------------------------------------------


def test_without_the_web_its_stages_are_skipped_and_the_answer_is_still_told() -> None:
    found = told(asked(best=0.1, web=WebMode.OFF))
    assert states(found, *WEB) == [SKIPPED] * 3
    assert set(headlines(found, *WEB)) == {"web search is off"}
    assert headlines(found, "assemble", "answer") == ["nothing is left", "not answered by this evidence"]
    assert not {"rewrite", "search", "grade_web"} & costs(found).keys()


def test_a_search_that_waits_for_approval_holds_up_what_comes_after_it() -> None:
    trace = asked(best=0.5, model=FakeModel(), web=WebMode.ASK)
    found = told(trace)
    assert states(found, *WEB) == [TAKEN, StageState.WAITING, WOULD_BE]
    assert found["rewrite"].calls == 1
    assert states(found, "refine", "assemble", "answer") == [TAKEN, WOULD_BE, WOULD_BE]
    assert set(headlines(found, "grade_web", "assemble", "answer")) == {"after your approval"}


@pytest.mark.parametrize(
    ("outcome", "state"), [(WebOutcome.EMPTY, TAKEN), *((one, StageState.FAILED) for one in list(WebOutcome)[2:5])]
)
def test_a_search_that_brings_nothing_is_found_empty_or_failed(outcome: WebOutcome, state: StageState) -> None:
    found = told(asked(best=0.5, reply=WebReply(outcome, "fake web", message="It did not work.")))
    assert states(found, "search", "grade_web", "answer") == [state, NOT_TAKEN, TAKEN]
    assert found["search"].detail == "It did not work."


# --- grading that was not needed, not possible, not read ------------------------------------------------------------


def test_a_rule_skips_grading_and_is_named() -> None:
    found = told(asked(policy="agentic", found=passages(2), model=FakeModel()))
    assert states(found, "grade", "route", "refine") == [SKIPPED, TAKEN, TAKEN]
    assert headlines(found, "grade", "route") == ["not needed: rule few_context", "by rule few_context"]
    assert "grade" not in costs(found)


# --- looking again --------------------------------------------------------------------------------------------------


def by_engine(query: str, engine: Engine) -> tuple[Passage, ...]:
    return passages(3) if engine is Engine.HYBRID else (passage(7), passage(8), passage(9))


def test_two_rounds_are_counted_with_what_they_brought() -> None:
    of = changed("agentic", skip=())
    found = told(asked(policy=of, finding=by_engine, scoring=by_id(p1=0.1, p2=0.1, p3=0.1, p7=0.9, p8=0.9, p9=0.1)))
    again = found["again"]
    assert (again.state, again.headline, again.detail) == (TAKEN, "1 more round, 3 new", "by keywords")
    assert headlines(found, "grade", "retrieve") == ["6 graded, best 0.90", "3 chunks"]
    assert found["refine"].headline == "2 chunks as they are"
    assert found["refine"].detail == "1 chunk set aside first"


def test_a_round_that_the_record_does_not_hold_would_be_taken() -> None:
    trace = asked(best=0.5)
    of = changed("agentic", skip=())
    again = told(trace, of)["again"]
    assert (again.state, again.headline, again.detail) == (WOULD_BE, "not in this record", "keywords refined")
    rounds = asked(policy=of, finding=by_engine, best=0.1)
    assert told(rounds)["again"].state is TAKEN
    more = told(rounds, replace(of, max_rounds=9))["again"]
    assert (more.state, more.headline) == (WOULD_BE, "2 more rounds, 3 new; the next not in this record")


def test_a_round_with_nothing_new_to_ask_is_told_as_that() -> None:
    of = changed("agentic", skip=(), max_rounds=4)
    again = told(asked(policy=of, best=0.5))["again"]
    assert (again.state, again.headline) == (TAKEN, "2 more rounds, 0 new; then nothing new to ask")
    assert (
        again.detail
        == "keywords refined, then keywords refined; no keywords of question and chunks are left that were not asked"
    )


# --- after a slider was moved ---------------------------------------------------------------------------------------


def test_stages_that_the_record_lacks_say_so_and_cost_nothing() -> None:
    trace = asked(best=0.9, model=FakeModel())
    found = told(trace, trace.settings.policy.with_thresholds(0.95, 0.99))
    assert found["route"].action is Action.INCORRECT
    assert states(found, *WEB, "assemble", "answer") == [WOULD_BE] * 5
    assert set(headlines(found, *WEB, "assemble", "answer")) == {"not in this record"}
    assert costs(found).keys() == {"retrieve", "grade", "route", "refine"}


def test_a_recorded_search_that_is_not_needed_now_costs_nothing_on_the_path() -> None:
    trace = asked(best=0.5, model=FakeModel())
    found = told(trace, trace.settings.policy.with_thresholds(0.1, 0.2))
    assert states(found, *WEB, "assemble") == [NOT_TAKEN, NOT_TAKEN, NOT_TAKEN, TAKEN]
    assert found["search"].detail == "the record holds a search that is not used now"
    assert not set(WEB) & costs(found).keys()
    assert found["assemble"].seconds is None, "it is put together now, from the record"
    assert states(found, "answer") == [WOULD_BE]


# --- runs that broke off --------------------------------------------------------------------------------------------


def away(found: Passage) -> Grade:
    return Grade(found.id, None, cause=AWAY.message, retryable=True, error="ModelUnavailable")


def test_a_judge_that_is_away_fails_the_grading_and_nothing_after_it_is_claimed() -> None:
    judge = replace(card("llm", calls_model=True), batch=2)
    found = told(
        asked(judge=judge, scoring=lambda one: 0.9 if one.id in ("p1", "p2") else away(one), found=passages(6))
    )
    assert states(found, "retrieve", "grade") == [TAKEN, StageState.FAILED]
    assert found["grade"].headline == AWAY.message
    assert found["grade"].seconds is not None
    assert TAKEN not in states(found, *STAGES[2:])
    assert set(headlines(found, *STAGES[2:])) == {"not reached"}
    assert found["route"].action is None


def test_a_stop_at_the_answer_keeps_what_was_done() -> None:
    run = Run()
    trace = Bench(best=0.9, model=FakeModel(answer=lambda _: (run.cancel.set(), "x" * 50)[1])).pipeline.run(
        QUESTION, run
    )
    found = told(trace)
    assert states(found, "refine", "assemble", "answer") == [TAKEN, TAKEN, StageState.STOPPED]


# --- the check, and old records -------------------------------------------------------------------------------------


def test_the_check_is_told_only_where_the_record_holds_it() -> None:
    trace = asked(best=0.9, model=FakeModel())
    checked = replace(trace, support=(Support(0, 5, 0.9, ("p1#0",)), Support(6, 9, 0.2), Support(9, 9, None)))
    check = told(checked)["check"]
    assert (check.headline, check.detail) == ("words of 1 of 3 sentences found", "1 could not be checked")
    judged = replace(checked, settings=replace(trace.settings, support="ollama/judge"))
    cost = Step("check answer", "", seconds=2.0, usage=Usage(3))
    check = told(replace(judged, steps=(*trace.steps, cost)))["check"]
    assert check.detail == "1 could not be checked; judged by ollama/judge"
    assert (check.calls, check.seconds) == (3, 2.0)
    moved = told(checked, trace.settings.policy.with_thresholds(0.95, 0.99))
    assert moved["check"].state is WOULD_BE
    assert list(told(replace(checked, support=None))) == list(STAGES)


# --- while a run is under way ---------------------------------------------------------------------------------------


class Watcher(Listener):
    """Tells the story at every turn, as the page does."""

    def __init__(self, begun: Trace) -> None:
        self.trace = begun
        self.stories: list[tuple[str, RunPath]] = []

    def started(self, name: str) -> None:
        self.stories.append((name, told(self.trace, running=name)))

    def finished(self, step: Step, trace: Trace) -> None:
        self.trace = trace
        self.stories.append((step.name, told(trace, running=step.name)))


def watch(**bench: Any) -> list[tuple[str, RunPath]]:
    made = Bench(**bench)
    begun = made.pipeline.begin(QUESTION)
    watcher = Watcher(begun)
    made.pipeline.resume(begun, Run(watcher))
    return watcher.stories


@pytest.mark.parametrize(("name", "best"), diagonal(POLICIES, [0.9, 0.5, 0.1]))
def test_a_run_under_way_claims_no_decision_before_it_stands(name: str, best: float) -> None:
    stories = watch(policy=name, best=best, model=FakeModel(), finding=by_engine)
    assert {tuple(found) for _, found in stories} == {STAGES}
    for step, found in stories:
        running = [stage for stage in found.values() if stage.state is StageState.RUNNING]
        assert len(running) <= 1 and all(step in PLACES[stage.id][2] for stage in running)
        if step in ("retrieve", "grade"):
            assert found["route"].action is None
            assert states(found, "refine", *WEB) == [StageState.TO_COME] * 4
        assert WOULD_BE not in states(found) and StageState.FAILED not in states(found)


# --- any record under any policy ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "how"),
    diagonal(POLICIES, [(WebMode.AUTO, (0.0, 1.0)), (WebMode.ASK, (0.0, 0.0)), (WebMode.OFF, (1.0, 1.0))]),
)
def test_any_record_can_be_told_under_any_policy(of: str, how: tuple[WebMode, tuple[float, float]]) -> None:
    web, at = how
    for best in (None, 0.1, 0.5, 0.9):
        grades = {"scoring": lambda one: away(one)} if best is None else {"best": best}
        trace = asked(policy=of, web=web, finding=by_engine, **grades)
        for name in POLICIES:
            found = told(trace, policy(name).with_thresholds(*at))
            assert list(found) == list(STAGES)
            assert all(is_sound(stage) for stage in found.values())


def is_sound(stage: Stage) -> bool:
    """Words for everything, and a cost only of what was carried out."""
    idle = stage.state in (NOT_TAKEN, SKIPPED, WOULD_BE)
    return bool(stage.headline) and bool(stage.anchor) and not (idle and (stage.calls or stage.seconds is not None))
