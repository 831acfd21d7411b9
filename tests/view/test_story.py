"""A run told as a story: each step stands alone, says only what the record holds, and ugly records have a story too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from crag_core.base.serialization import to_plain
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL
from crag_core.base.types.steps import Step, StepState
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.evaluators.policies import plain_rag, suit
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace, context_key
from crag_core.view.run_view import RunView, view_run
from crag_core.view.story.moves import Move, bar_picture, moved, nearest_move
from crag_core.view.story.steps import Picture, Story, StoryStep
from crag_core.view.story.story import tell
from tests.builders import graded, passage, policy, policy_file, strips_of, trace, twice, web_page
from tests.made_up_runs import Facts, facts
from ui.session.demos import Demo, demos

LONGEST = 45  # words of a caption: what a viewer reads while somebody speaks


@pytest.fixture(params=range(6), ids=lambda at: demos()[at].trace.id)
def demo(request: pytest.FixtureRequest) -> Demo:
    return demos()[request.param]


def told(run: Trace, **more: Any) -> Story:
    return tell(view_run(run), **more)


def of_demo(demo: Demo) -> Story:
    other = suit(policy_file(demo.other), demo.trace.settings.evaluator.name) if demo.other else None
    return told(demo.trace, title=demo.title, notes=demo.notes, move=demo.move, other=other)


def ids(story: Story) -> list[str]:
    return [step.id for step in story.steps]


def step(story: Story, id_: str) -> StoryStep:
    return next(one for one in story.steps if one.id == id_)


def answered(run: Trace, text: str = "Some text [1].", state: AnswerState = AnswerState.COMPLETE) -> Trace:
    routed = reroute(run, run.settings.policy)
    key = context_key(run.question, routed.decision.action, routed.knowledge.excerpts)
    return replace(run, decision=routed.decision, answer=Answer(text, state, "extractive", key, "Nothing there."))


def run_of(name: str = "two-signal", *scores: Any, **fields: Any) -> Trace:
    found, grades = twice(*(scores or ((0.9, 0.95), (0.2, 0.5))))
    strips = tuple(strip for one in found for strip in strips_of(one, ("Some text.", 0.7)))
    return answered(trace(policy(name), **{"passages": found, "grades": grades, "strips": strips} | fields))


# --- the recorded ones ------------------------------------------------------------------------------------------------


def test_a_row_of_a_table_is_told_by_heads_and_cells() -> None:
    row = "product: Blue kettle; price_eur: 39.90; note: 1.7 litres; cordless"
    run = trace(policy("paper"), passages=(passage("p1", row),), grades=None)
    (chunk,) = step(told(run), "found").picture["chunks"]
    assert chunk["cells"] == (("product", "Blue kettle"), ("price eur", "39.90"), ("note", "1.7 litres; cordless"))


def test_there_are_six_and_each_has_six_to_eight_short_steps(demo: Demo) -> None:
    story = of_demo(demo)
    assert len(demos()) == 6 and 6 <= len(story.steps) <= 8
    assert all(len(one.caption.split()) <= LONGEST for one in story.steps), [one.caption for one in story.steps]
    assert len(json.dumps(to_plain(story))) < 25_000


def test_every_number_of_a_caption_is_one_of_the_record(demo: Demo) -> None:
    view, story = view_run(demo.trace), of_demo(demo)
    known = {f"{value:.2f}" for value in numbers(view, demo)} | {"0", "1"}
    for one in story.steps:
        assert set(re.findall(r"\d+\.\d+", one.caption)) <= known, one.caption


def numbers(view: RunView, demo: Demo) -> Iterator[float]:
    yield from (view.policy.lower, view.policy.upper)
    if demo.other:
        yield from (suit(policy_file(demo.other), "cross-encoder").lower,)
    move = demo.move or nearest_move(view)
    yield from (move.to,) if move else ()
    for grade in view.trace.all_grades:
        yield grade.score or 0.0
        yield from (value for _, value in grade.parts)


def test_they_show_what_they_are_titled() -> None:
    actions = [one.trace.decision.action for one in demos() if one.trace.decision]
    right, doubt, wrong = Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT
    assert actions == [right, doubt, wrong, right, right, doubt]
    first, saved, elsewhere, low, two, trap = map(of_demo, demos())
    assert "27 days" in answer_of(first)["text"]
    assert answer_of(saved)["sources"][0]["is_web"] and "shipyard" in answer_of(saved)["text"]
    assert {one["state"] for one in step(elsewhere, "documents").picture["chunks"]} == {"aside"}
    assert "the bar is at 0.35" in step(low, "decided").caption and "0.75" in step(low, "bar").caption
    both = step(two, "policies").picture["readings"]
    assert [one["outcome"].verdict.action for one in both] == ["CORRECT", "INCORRECT"]
    assert answer_of(trap)["text"] == "" and "14.00" in answer_of(trap)["nearest"]["text"]


def answer_of(story: Story) -> Picture:
    return step(story, "answer").picture


def test_an_answer_is_as_before_only_where_it_is_the_same(demo: Demo) -> None:
    """Moved to CORRECT, a run that was answered from the web is quoted from the documents."""
    story = of_demo(demo)
    last = story.steps[-1].picture
    outcomes = last["outcomes"] if last["kind"] == "bar" else [one["outcome"] for one in last["readings"]]
    taken = demo.trace.answer
    for one in outcomes:
        told = dict(one.lines)
        if told["Web"].startswith(("not asked", "would be")):
            assert "from the web" not in told["Answer"] and "the web" not in told["Answer"].partition(":")[0]
        if told["Answer"].startswith("as shown before"):
            assert taken is not None and taken.text
    assert dict(outcomes[0].lines)["Answer"].startswith(("as shown before, from ", "none"))


def test_an_answer_with_other_numbers_in_its_citations_is_the_same_answer() -> None:
    """Below the bar for the subject sentences of documents come before the web page, and it is quoted as before."""
    elsewhere = next(one for one in demos() if one.trace.id == "demo-3-elsewhere")
    last = of_demo(elsewhere).steps[-1].picture
    there = next(one for one in last["stretches"] if one["first"] <= last["goal"] <= one["last"])
    assert dict(last["outcomes"][there["outcome"]].lines)["Answer"] == "as shown before, from the web"


def test_a_staged_bar_shows_what_the_decision_really_is_there(demo: Demo) -> None:
    view = view_run(demo.trace)
    move = demo.move or nearest_move(view)
    assert move is not None
    drawn = bar_picture(view, move)
    assert drawn is not None
    assert drawn["outcomes"][0].verdict.action == view.routed.decision.action
    for place in range(101):
        at = moved(view.policy, move.threshold, place)
        there = [one for one in drawn["stretches"] if one["first"] <= place <= one["last"]]
        assert (at is not None) == (len(there) == 1)
        if at:
            shown = drawn["outcomes"][there[0]["outcome"]].verdict.action
            assert shown == reroute(demo.trace, at).decision.action, place
    goal = moved(view.policy, move.threshold, drawn["goal"])
    assert goal and reroute(demo.trace, goal).decision.action is not view.routed.decision.action


# --- the bar ----------------------------------------------------------------------------------------------------------


def test_the_nearest_move_passes_the_score_by_a_hundredth_that_is_seen() -> None:
    view = view_run(run_of("two-signal", (0.752, 0.95), (0.2, 0.5)))
    move = nearest_move(view)  # upper 0.60: 0.75 would look like the score of the chunk
    assert move == Move("upper", 0.76)


def test_no_bar_where_none_can_change_the_decision() -> None:
    found, grades = graded(1.0, 1.0)
    run = answered(trace(policy("paper"), passages=found, grades=grades))
    assert "bar" not in ids(told(run))


# --- ugly records -----------------------------------------------------------------------------------------------------


def broken(name: str, state: StepState = StepState.FAILED, **fields: Any) -> Trace:
    return trace(policy("paper"), steps=(Step(name, "The store is away.", state, hint="Start it."),), **fields)


@pytest.mark.parametrize("state", [StepState.FAILED, StepState.STOPPED])
def test_a_run_that_broke_off(state: StepState) -> None:
    assert ids(told(broken("retrieve", state))) == ["question", "answer"]
    found, _ = graded(0.5)
    story = told(broken("grade", state, passages=found))
    assert ids(story) == ["question", "found", "answer"]
    assert "The store is away. Start it." in step(story, "answer").caption


def test_grades_that_could_not_be_read_are_no_numbers() -> None:
    story = told(run_of("paper", 0.5, None, None))
    assert "Two chunks could not be graded" in step(story, "graded").caption
    assert [one.value for one in step(story, "graded").picture["scales"][0].scores] == [0.5, None, None]
    found, grades = graded(None, None)
    none = told(answered(trace(policy("paper"), passages=found, grades=grades)))
    assert "could grade none of the two chunks" in step(none, "graded").caption
    assert "No chunk could be graded" in step(none, "decided").caption and "bar" not in ids(none)


def test_plain_rag_has_no_check_and_no_bar() -> None:
    found, _ = graded(0.5, 0.5)
    story = told(answered(trace(plain_rag(), passages=found)))
    assert ids(story) == ["question", "found", "decided", "documents", "answer"]
    assert step(story, "decided").title == "No check" and "does not check" in step(story, "question").caption
    assert {place.name: place.state for place in story.steps[-1].way}["Grade"] == "off"


def test_no_answer_and_an_unfinished_one() -> None:
    run = run_of()
    assert "No answer was written" in step(told(replace(run, answer=None)), "answer").caption
    stopped = answered(run, "Some", AnswerState.STOPPED)
    assert "broke off" in step(told(stopped), "answer").caption
    unwritten = told(answered(run, "", AnswerState.FAILED))
    assert step(unwritten, "answer").title == "An answer that is not whole"
    assert dict(unwritten.steps[-1].picture["outcomes"][0].lines)["Answer"] == "none: it broke off"
    refused = told(answered(run, "", AnswerState.CANNOT_ANSWER))
    assert (
        step(refused, "answer").title == "No answer, and it says so" and answer_of(refused)["why"] == "Nothing there."
    )


def test_every_outcome_of_a_web_search_is_told() -> None:
    unasked = {WebOutcome.COOLING, WebOutcome.PENDING, WebOutcome.APPROVED, WebOutcome.REFUSED, WebOutcome.OFF}
    for outcome in WebOutcome:
        pages = (web_page("w", "Fares."),) if outcome is WebOutcome.USED else ()
        web = WebSearch(outcome, "q", "me", "DuckDuckGo", passages=pages)
        story = told(run_of("two-signal", (0.2, 0.9), web=web))
        assert ("web" in ids(story)) == (outcome is not WebOutcome.OFF)
        said = dict(story.steps[-1].picture["outcomes"][0].lines)["Web"]
        assert said.startswith("asked") == (outcome not in unasked), said
        assert ("switched off" in step(story, "decided").note) == (outcome is WebOutcome.OFF)
        assert all(one.caption for one in story.steps)


def test_web_results_are_told_by_the_score_that_the_policy_compares() -> None:
    web = WebSearch(WebOutcome.USED, "q", "me", "DuckDuckGo", passages=(web_page("w", "Fares."),))
    grade = Grade("w", 0.9, parts=((ANSWERING, 0.8), (TOPICAL, 1.0)))
    for name, best in (("paper", "0.90"), ("two-signal", "0.80")):
        run = run_of(name, (0.2, 0.5), web=web)
        run = replace(run, opinions=(replace(run.opinions[0], grades=(*run.opinions[0].grades, grade)),))
        assert f"the best scores {best}" in step(told(run), "web").caption


def test_only_what_decides_has_its_bar() -> None:
    correct, doubt = (step(told(run_of("two-signal", pair)), "decided").picture for pair in ((0.9, 0.9), (0.2, 0.9)))
    assert [len(one["scales"]) for one in (correct, doubt)] == [1, 2]
    assert not any(one.bars for one in step(told(run_of()), "graded").picture["scales"])


def test_the_sentence_that_helps_is_among_those_that_are_shown() -> None:
    text = " ".join(f"Sentence {n}." for n in range(40))
    found, grades = twice((0.9, 0.9))
    found = (replace(found[0], text=text),)
    strips = strips_of(found[0], *((f"Sentence {n}.", 0.9 if n == 30 else 0.0) for n in range(40)))
    picture = step(
        told(answered(trace(policy("two-signal"), passages=found, grades=grades, strips=strips))), "documents"
    ).picture
    assert [line["text"] for line in picture["sentences"] if line["kept"]] == ["Sentence 30."]
    assert picture["more"] == "33 more sentences of this chunk"


EVIL = '<script>alert(1)</script>\u202e\x00"]]>{{ 7 }}'


def test_texts_lose_what_could_disguise_them() -> None:
    found, grades = twice((0.9, 0.9))
    found = (replace(found[0], text=f"{EVIL}. Some text.", source=EVIL),)
    run = answered(trace(policy("two-signal"), passages=found, grades=grades, question=EVIL), f"{EVIL} [1]")
    dumped = json.dumps(to_plain(told(run, title=EVIL, notes={"question": EVIL})), ensure_ascii=False)
    assert "\u202e" not in dumped and "\\u0000" not in dumped and dumped.count("alert(1)") >= 5


@given(facts())
@settings(max_examples=60, deadline=None)
def test_whatever_a_record_holds_it_can_be_told(found: Facts) -> None:
    run = found.record()
    story = told(run)
    assert 2 <= len(story.steps) <= 8 and len({one.id for one in story.steps}) == len(story.steps)
    assert all([place.state for place in one.way].count("now") == 1 for one in story.steps)
    for bar in (one.picture for one in story.steps if one.picture["kind"] == "bar"):
        assert bar["outcomes"][0].verdict.action == reroute(run, run.settings.policy).decision.action


def test_of_many_chunks_the_first_are_shown_and_the_one_that_decides() -> None:
    story = told(run_of("two-signal", *[(0.2, 0.9)] * 19, (0.7, 0.9)))
    scale = step(story, "decided").picture["scales"][0]
    assert [one.number for one in scale.scores] == ["1", "2", "3", "4", "5", "6", "7", "20"]
    assert scale.more == 12 and "best of 20 chunks scores 0.70" in step(story, "decided").caption
