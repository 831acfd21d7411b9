"""What if: what was changed in words, what that does, the way back, and a second answer beside the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.workbench import Choice
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.edits import Edits
from crag_core.base.types.steps import Step, Usage
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Doubtful, Policy
from crag_core.evaluators.policies import known_card
from crag_core.pipeline.run import WebMode
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace, context_key
from crag_core.view.run_view import view_run
from crag_core.view.verdict_lines import changes, notes
from tests.builders import graded_by_its_own, searched, web_page
from tests.ui.drawn import a_run, drawn, parts, popovers, said
from ui.run.answer_card.beside import draw_two_answers
from ui.run.answer_card.card import draw_answer
from ui.run.answer_card.offer import Offer, cost, offer
from ui.run.verdict import draw_changes
from ui.session.current_run import view_of


def page(taken: Trace, run: Trace, policy: Policy, first: Trace | None = None, acts: Any = None) -> None:
    def act(name: str) -> Callable[..., None]:
        return lambda *given: (acts if acts is not None else []).append(name)

    draw_changes(view_of(taken, run, policy), first, act("undo"), act("original"))


def a_taken_run(of: str = "paper") -> tuple[Trace, Policy]:
    """Taken at 0.3 and 0.4 with the cut-off 0.35: CORRECT, and two sentences are kept."""
    run, chosen = a_run(2, of)
    chosen = chosen.with_thresholds(0.3, 0.4, 0.35)
    return replace(run, settings=replace(run.settings, policy=chosen)), chosen


def answered(run: Trace, policy: Policy, text: str = "It pays 14 pounds [1].") -> Trace:
    routed = reroute(run, policy)
    key = context_key(run.question, routed.decision.action, routed.knowledge.excerpts)
    return replace(run, answer=Answer(text, AnswerState.COMPLETE, "ollama/small", key))


def button(app: AppTest, key: str) -> Any:
    return next(one for one in app.button if one.key == key)


# What was changed


def test_moved_numbers_are_told_with_those_before() -> None:
    run, chosen = a_taken_run()
    assert changes(run, run, chosen.with_thresholds(0.3, 0.5, 0.35)) == ("upper threshold 0.50 instead of 0.40",)
    assert changes(run, run, chosen.with_thresholds(0.3001, 0.4, 0.6)) == (
        "lower threshold 0.3001 instead of 0.3000",
        "sentence cut-off 0.60 instead of 0.35",
    )
    two, one_of_two = a_taken_run(of="two-signal")
    assert changes(two, two, one_of_two.with_thresholds(0.3, 0.5)) == ("bar for an answer 0.50 instead of 0.40",)
    assert "upper threshold 0.50 instead of 0.40" in changes(two, two, chosen.with_thresholds(0.3, 0.5))
    abstaining = chosen.with_doubtful(Doubtful.ABSTAIN)
    assert changes(run, run, abstaining) == ("doubtful ending “abstain” instead of “show”",)


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        (Edits(dropped=("p2",)), ("chunk 2 dropped",)),
        (Edits(dropped=("p3", "p1")), ("chunks 1 and 3 dropped",)),
        (Edits(dropped=("w1",), pinned=("p1", "p2", "p3")), ("web result 4 dropped", "chunks 1, 2 and 3 pinned")),
        (Edits(dropped=("nobody",)), ()),
    ],
)
def test_dropped_and_pinned_passages_are_told_by_their_number(edits: Edits, told: tuple[str, ...]) -> None:
    run, chosen = a_run(3, web=searched(web_page("w1", "Dues.")))
    assert changes(run, replace(run, edits=edits), chosen) == told


# Beside the verdict


def test_the_run_as_taken_is_called_original() -> None:
    run, chosen = a_taken_run()
    app = drawn(page, taken=run, run=run, policy=chosen)
    assert "Original run" in said(app) and not app.button and not popovers(app)


def test_one_change_is_told_and_several_are_counted() -> None:
    run, chosen = a_taken_run()
    one = drawn(page, taken=run, run=run, policy=chosen.with_thresholds(0.3, 0.4, 0.6))
    assert popovers(one) == ["Changed: sentence cut-off 0.60 instead…"]
    two = drawn(page, taken=run, run=run, policy=chosen.with_thresholds(0.8, 0.9))
    assert popovers(two) == ["2 changes"]


def test_the_difference_is_counted_on_request() -> None:
    run, chosen = a_taken_run()
    app = drawn(page, taken=run, run=run, policy=chosen.with_thresholds(0.3, 0.4, 0.6))
    app.session_state["what_if_pieces"] = True
    text = said(app.run()).replace("**", "")
    assert "sentence cut-off 0.60 instead of 0.35." in text
    assert "1 kept]" in text and "− 1 gone]" in text and "+ 0 new]" in text


def test_a_generated_run_is_not_called_the_original_and_leads_back_to_it() -> None:
    run, chosen = a_taken_run()
    stricter = chosen.with_thresholds(0.3, 0.4, 0.6)
    second = replace(run, id="run-2", settings=replace(run.settings, policy=stricter))
    acts: list[str] = []
    app = drawn(page, taken=second, run=second, policy=stricter, first=run, acts=acts)
    assert "Original run" not in said(app) and not popovers(app), "nothing is changed since it was generated"
    back = button(app, "what_if_original")
    assert back.label == "Back to the original run"
    assert "sentence cut-off 0.60 instead of 0.35" in back.help.replace("\\", "")
    back.click().run()
    assert acts == ["original"]


# In the place of the answer


def card(run: Trace, policy: Policy, offered: Offer, acts: Any = None) -> None:
    draw_answer(view_run(run, policy), offered, lambda view: acts.append("generate"))


def test_what_is_missing_stands_where_the_answer_was_with_the_button_and_its_cost() -> None:
    run, chosen = a_taken_run()
    run, acts = answered(run, chosen), []  # type: ignore[var-annotated]
    offered = Offer(("web search", "answer"), 2, True)
    app = drawn(card, run=run, policy=chosen.with_thresholds(0.8, 0.9), offered=offered, acts=acts)
    (kept,) = parts(app, "answer")
    assert kept == {"blocks": [], "message": "Not run yet: web search, answer."}
    assert button(app, "ask_carry_out").label == "Generate (about 2 LLM calls, 1 web search)"
    button(app, "ask_carry_out").click().run()
    assert acts == ["generate"]


def test_the_rest_of_an_answer_that_was_cut_is_offered_and_the_ending_says_where() -> None:
    run, chosen = a_taken_run()
    card_of = replace(run.settings.evaluator, name="embedding")
    made = replace(run.settings, writer="ollama/small", evaluator=card_of)
    run = graded_by_its_own(replace(run, settings=made, opinions=()), run.grades)
    answer = answered(run, chosen).answer
    assert answer is not None
    run = replace(run, answer=replace(answer, state=AnswerState.CUT, message="Cut after 768 tokens."))
    choice = Choice(chosen, card_of.name, "ollama/small", WebMode.OFF, made.top_k)
    offered = offer(run, reroute(run, chosen), choice, None)
    app = drawn(card, run=run, policy=chosen, offered=offered)
    assert "Cut after 768 tokens" in said(app) and "written until then, unchecked" in said(app)
    assert button(app, "ask_carry_out").label == "Continue (about 1 LLM call)"


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
    assert "Original run." in text and "With sentence cut-off 0.60 instead of 0.35." in text
    assert "2 LLM calls, 0.5 s" in text and "3 LLM calls, 2.8 s" in text
    assert "the second answer took 1 LLM call, 2.2 s more" in text
    assert "1 kept]" in text and "− 1 gone]" in text


def test_chunks_that_an_outage_left_ungraded_are_said_and_the_rest_is_offered() -> None:
    run, chosen = a_run()
    assert run.grades is not None
    first, *others = run.grades
    made = replace(run.settings, evaluator=known_card("llm"), writer="ollama/m")
    lost = replace(first, score=None, parts=(), cause="Ollama went away.", retryable=True)
    run = graded_by_its_own(replace(run, settings=made, opinions=()), (lost, *others))
    routed = reroute(run, chosen)
    found = offer(run, routed, Choice(chosen, "llm", "ollama/m", top_k=made.top_k), None)
    assert found.reasons[0] == "grades of 1 chunk" and found.rest == "Grade the rest"
    assert any(note.endswith("chunks not graded: Ollama went away.") for note in notes(view_run(run, chosen)))
    unreadable = graded_by_its_own(run, (replace(lost, retryable=False), *others))
    assert offer(unreadable, routed, Choice(chosen, "llm", "ollama/m", top_k=made.top_k), None).rest == ""


@pytest.mark.parametrize(
    ("outcome", "missing"),
    [
        (None, "Not run yet: web search, answer"),
        (WebOutcome.OFF, "Not run yet: web search, answer"),
        (WebOutcome.COOLING, "Not run yet: web search, answer"),
        (WebOutcome.FAILED, "Web search failed"),
        (WebOutcome.TIMED_OUT, "Web search failed (timed out)"),
        (WebOutcome.REFUSED, "Web search refused"),
    ],
)
def test_a_search_that_was_tried_is_not_called_not_run_yet(outcome: WebOutcome | None, missing: str) -> None:
    run, chosen = a_run()
    web = None if outcome is None else replace(searched(), outcome=outcome)
    made = replace(run.settings, evaluator=known_card("cross-encoder"), writer="extractive")
    run = graded_by_its_own(replace(run, settings=made, web=web, opinions=()), run.grades)
    lower = chosen.with_thresholds(0.98, 0.99)
    choice = Choice(lower, "cross-encoder", "extractive", WebMode.AUTO, made.top_k)
    found = offer(run, reroute(run, lower), choice, None)
    assert (found.missing, bool(found.tried), found.is_outdated) == (missing, missing.startswith("Web"), False)
    assert found.searches and cost(found) == "0 LLM calls, 1 web search"
    assert offer(run, reroute(run, lower), replace(choice, collection="other"), None).is_outdated
