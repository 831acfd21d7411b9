"""What if: what was changed in words, what that does, the way back, and a second answer beside the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.workbench import Choice
from crag_core.base.prompts.messages import VERSION
from crag_core.base.types import Answer, AnswerState, Edits, Step, Usage
from crag_core.decision.policy import Doubtful, Policy
from crag_core.evaluators.policies import known_card
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace, context_key
from crag_core.view.run_view import view_run
from crag_core.view.verdict_lines import changes
from tests.builders import passage, policy, searched, trace, web_page
from tests.ui.drawn import SENTENCES, a_run, drawn, elements, said
from ui.run.what_if import Offer, draw_two_answers, draw_what_if, offer
from ui.session.current_run import view_of

NOTHING = Offer((), 0, False)


def page(taken: Trace, run: Trace, policy: Policy, offered: Offer = NOTHING, acts: Any = None) -> None:
    def act(name: str) -> Callable[[], None]:
        return lambda: (acts if acts is not None else []).append(name)

    draw_what_if(view_of(taken, run, policy), offered, act("undo"), lambda view: act("generate")())


def a_taken_run(count: int = 2) -> tuple[Trace, Policy]:
    """Taken at 0.3 and 0.4 with the cut-off 0.35: CORRECT, and two sentences are kept."""
    run, chosen = a_run(count, "paper")
    chosen = chosen.with_thresholds(0.3, 0.4, 0.35)
    return replace(run, settings=replace(run.settings, policy=chosen)), chosen


def answered(run: Trace, policy: Policy, text: str = "It pays 14 pounds [1].") -> Trace:
    routed = reroute(run, policy)
    key = context_key(run.question, routed.decision.action, routed.knowledge.excerpts)
    return replace(run, answer=Answer(text, AnswerState.COMPLETE, "ollama/small", key))


def button(app: AppTest, key: str) -> Any:
    return next(one for one in app.button if one.key == key)


# What was changed


def test_run_as_taken_is_not_changed() -> None:
    run, chosen = a_taken_run()
    assert changes(run, run, chosen) == ()


def test_moved_numbers_are_told_with_those_before() -> None:
    run, chosen = a_taken_run()
    assert changes(run, run, chosen.with_thresholds(0.3, 0.5, 0.35)) == ("upper threshold 0.50 instead of 0.40",)
    assert changes(run, run, chosen.with_thresholds(0.3001, 0.4, 0.6)) == (
        "lower threshold 0.3001 instead of 0.3000",
        "sentence cut-off 0.60 instead of 0.35",
    )
    abstaining = replace(chosen, doubtful=Doubtful.ABSTAIN)
    assert changes(run, run, abstaining) == ("doubtful ending “abstain” instead of “show”",)


def test_other_policy_and_evaluator_are_told_by_title() -> None:
    run, chosen = a_taken_run()
    other = policy("signals").with_thresholds(0.3, 0.4, 0.35)
    card = replace(run.settings.evaluator, name="llm", title="LLM judge", calls_model=True)
    judged = replace(run, settings=replace(run.settings, evaluator=card, writer="ollama/small"))
    assert changes(run, judged, other) == (
        f"policy {other.title} instead of {chosen.title}",
        "graded by llm judge (small) instead of by hand",
        "no sentence limit instead of 5",
    )
    another = replace(judged, settings=replace(judged.settings, writer="ollama/large"))
    assert changes(judged, another, chosen) == ("graded by llm judge (large) instead of llm judge (small)",)


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        (Edits(dropped=("p2",)), ("chunk 2 dropped",)),
        (Edits(dropped=("p3", "p1")), ("chunks 1 and 3 dropped",)),
        (Edits(dropped=("w1",), pinned=("p1", "p2", "p3")), ("web result 1 dropped", "chunks 1, 2 and 3 pinned")),
        (Edits(dropped=("nobody",)), ()),
    ],
)
def test_dropped_and_pinned_passages_are_told_by_their_number(edits: Edits, told: tuple[str, ...]) -> None:
    run, chosen = a_run(3, web=searched(web_page("w1", "Dues.")))
    assert changes(run, replace(run, edits=edits), chosen) == told


def test_what_the_run_was_taken_with_is_no_change_but_taking_it_back_is() -> None:
    run, chosen = a_run(3, edits=Edits(dropped=("p1",), pinned=("p2",)))
    assert changes(run, run, chosen) == ()
    assert changes(run, replace(run, edits=Edits()), chosen) == ("chunk 1 put back", "chunk 2 no longer pinned")


# The panel


def test_idle_panel_says_what_can_be_tried_and_offers_nothing() -> None:
    run, chosen = a_taken_run()
    app = drawn(page, taken=answered(run, chosen), run=answered(run, chosen), policy=chosen)
    assert "The run as it was taken." in said(app) and "written from exactly this evidence" in said(app)
    assert button(app, "what_if_undo").disabled and button(app, "ask_carry_out").disabled


def test_panel_has_the_same_parts_whatever_is_changed() -> None:
    run, chosen = a_taken_run()
    offered = Offer(("an answer from this evidence",), 1, False)
    idle = drawn(page, taken=run, run=run, policy=chosen)
    other = drawn(page, taken=run, run=run, policy=chosen.with_thresholds(0.8, 0.9), offered=offered)
    assert elements(idle) == elements(other), "nothing below may jump"
    assert [one.key for one in idle.button] == [one.key for one in other.button]


def test_difference_is_told_in_counts_and_listed_on_request() -> None:
    run, chosen = a_taken_run()
    app = drawn(page, taken=run, run=run, policy=chosen.with_thresholds(0.3, 0.4, 0.6))
    text = said(app)
    assert "Changed: sentence cut-off 0.60 instead of 0.35." in text.replace("**", "")
    assert "Still" in text and "1 kept]" in text and "− 1 gone]" in text and "+ 0 new]" in text
    assert SENTENCES[0] not in text
    app.session_state["what_if_pieces"] = True
    text = said(app.run()).replace("**", "")
    assert f":orange[− {SENTENCES[1]}]" in text and f":gray[= {SENTENCES[0]}]" in text
    assert "file-1.md" in text


def test_another_action_stands_beside_the_first() -> None:
    run, chosen = a_taken_run()
    text = said(drawn(page, taken=run, run=run, policy=chosen.with_thresholds(0.8, 0.9)))
    assert "CORRECT]** → **:red[:material/cancel: INCORRECT]" in text
    assert "− 2 gone" in text


def test_dropping_a_passage_brings_its_twin_in() -> None:
    run, chosen = a_taken_run()
    text = said(drawn(page, taken=run, run=replace(run, edits=Edits(dropped=("p1",))), policy=chosen))
    assert "chunk 1 dropped" in text and "− 2 gone" in text and "+ 2 new" in text


def test_undo_and_generate_are_told() -> None:
    run, chosen = a_taken_run()
    acts: list[str] = []
    offered = Offer(("a web search", "an answer from this evidence"), 2, True)
    app = drawn(page, taken=run, run=run, policy=chosen.with_thresholds(0.8, 0.9), offered=offered, acts=acts)
    assert "Not in this record yet: a web search; an answer from this evidence." in said(app).replace("**", "")
    assert button(app, "ask_carry_out").label == "Generate this answer (about 2 model calls, 1 web search)"
    button(app, "ask_carry_out").click().run()
    button(app, "what_if_undo").click().run()
    assert acts == ["generate", "undo"]


def test_offer_without_a_change_can_be_taken_too() -> None:
    run, chosen = a_taken_run()
    offered = Offer(("8 chunks instead of 6", "an answer from this evidence"), 0, False)
    app = drawn(page, taken=run, run=run, policy=chosen, offered=offered)
    assert "8 chunks instead of 6" in said(app)
    assert not button(app, "ask_carry_out").disabled and button(app, "what_if_undo").disabled
    assert button(app, "ask_carry_out").label == "Generate this answer (no model call)"


def test_hostile_names_and_sentences_stay_text() -> None:
    evil = passage("p1", "[x](javascript:alert(1)) **b**.", source="<img src=x>.md")
    run = trace(policy("worst-chunk"), passages=(evil,), grades=())
    chosen = replace(policy("paper"), title="<b>[y](http://evil.example)</b>")
    app = drawn(page, taken=run, run=run, policy=chosen)
    app.session_state["what_if_pieces"] = True
    app.run()
    shown = "\n".join(str(element.value) for element in app.markdown)
    assert "](http" not in shown and "](javascript" not in shown and "<img" not in shown and "<b>" not in shown


# Two answers


def two(first: Trace, second: Trace) -> None:
    draw_two_answers(view_run(first), view_run(second))


def test_two_answers_stand_side_by_side_with_what_they_cost() -> None:
    run, chosen = a_taken_run()
    steps = (Step("grade", "2 of 2", seconds=0.5, usage=Usage(2, 10, 2)),)
    first = answered(replace(run, steps=steps), chosen)
    stricter = chosen.with_thresholds(0.3, 0.4, 0.6)
    second = replace(run, id="run-2", settings=replace(run.settings, policy=stricter))
    steps += (Step("answer", "written", seconds=2.25, usage=Usage(1, 5, 5)),)
    second = answered(replace(second, steps=steps), stricter, "Fourteen pounds [1].")
    app = drawn(two, first=first, second=second)
    text = said(app)
    assert "First answer" in text and "Second answer" in text
    assert "As the run was taken." in text and "With sentence cut-off 0.60 instead of 0.35." in text
    assert "2 model calls, 0.5 s" in text and "3 model calls, 2.8 s" in text
    assert "the second answer took 1 model call, 2.2 s more" in text
    assert "1 kept]" in text and "− 1 gone]" in text


def test_second_run_without_an_answer_is_drawn_too() -> None:
    run, chosen = a_taken_run()
    app = drawn(two, first=answered(run, chosen), second=replace(run, id="run-2"))
    assert "With the same settings." in said(app) and "no model call, 0.0 s" in said(app)


@pytest.mark.parametrize(
    ("evaluator", "changes", "reason", "more"),
    [
        ("cross-encoder", {}, "", 0),
        ("cross-encoder", {"writer_version": "new"}, "", 0),
        ("cross-encoder", {"evaluator": "2"}, "grades by trained evaluator in another version", 0),
        ("llm", {}, "", 0),
        ("llm", {"writer_version": "new"}, "grades by language model in another version", 6),
        ("llm", {"writer_version": ""}, "", 0),
    ],
)
def test_another_version_of_who_grades_is_offered_with_its_cost(
    evaluator: str, changes: dict[str, str], reason: str, more: int
) -> None:
    run, chosen = a_run()
    judge = replace(known_card(evaluator), version="1")
    made = replace(run.settings, evaluator=judge, writer="ollama/m", writer_version="old", prompts=VERSION)
    run = replace(run, settings=made)
    now = replace(made, evaluator=replace(judge, version=changes.get("evaluator", "1")))
    now = replace(now, writer_version=changes.get("writer_version", "old"))
    choice = Choice(chosen, evaluator, "ollama/m", top_k=made.top_k)
    routed = reroute(run, chosen)
    before, after = offer(run, routed, choice, None), offer(run, routed, choice, now)
    assert after.reasons == ((reason,) if reason else ()) + before.reasons
    assert after.calls == before.calls + more
