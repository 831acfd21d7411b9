"""The buttons for labels: what each press tells, what they show, and that nobody needs colour to read them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action
from crag_core.trace.feedback import About, Label, Mark, label_of
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace, context_key
from tests.builders import graded, policy, trace
from tests.ui.drawn import drawn
from ui.run import feedback
from ui.session import access
from ui.session.current_run import view_of

PAPER = policy("paper")
SCORES = {Action.CORRECT: 0.9, Action.AMBIGUOUS: 0.5, Action.INCORRECT: 0.1}
Said = list[tuple[object, ...]]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    """What the buttons tell, in a history that is on."""
    told: Said = []
    monkeypatch.setattr(feedback, "_can_label", lambda: True)
    monkeypatch.setattr(feedback, "_label", lambda *args: told.append(args))
    monkeypatch.setattr(access, "is_administrator", lambda: False)
    return told


def run_of(action: Action) -> Trace:
    found, grades = graded(SCORES[action])
    run = trace(PAPER, passages=found, grades=grades)
    routed = reroute(run, PAPER)
    key = context_key(run.question, routed.decision.action, routed.knowledge.excerpts)
    return replace(run, answer=Answer("It pays 14 pounds [1].", AnswerState.COMPLETE, "ollama/small", key))


def page(run: Trace) -> None:
    view = view_of(run, run, run.settings.policy)
    feedback.draw_feedback(view)
    draw = feedback.passage_feedback(view)
    assert draw is not None
    draw((run.passages or ())[0])


def show(monkeypatch: pytest.MonkeyPatch, action: Action = Action.CORRECT, *kept: Label | None) -> AppTest:
    labels = {(one.about, one.target): one for one in kept if one}
    monkeypatch.setattr(feedback, "_labels", lambda run_id: labels)
    return drawn(page, run=run_of(action))


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def press(app: AppTest, label: str, nth: int = 0) -> None:
    [button for button in app.button if button.label == label][nth].click().run()
    assert not app.exception


def route(mark: Mark, expected: Action | None = None) -> Label | None:
    """Said of a run that was CORRECT."""
    return label_of(run_of(Action.CORRECT), PAPER, mark, "now", action=Action.CORRECT, expected=expected)


def test_route_answer_and_chunk_are_judged_apart(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    app = show(monkeypatch)
    assert labels(app) == ["Right", "Wrong", "Right", "Wrong", "Relevant", "Not relevant"]
    assert all("changes nothing in this run" in button.help for button in app.button)
    press(app, "Wrong")
    press(app, "Right", nth=1)
    press(app, "Not relevant")
    assert said == [
        (About.ROUTE, "", Mark.WRONG, None, True),
        (About.ANSWER, "", Mark.RIGHT, None, True),
        (About.PASSAGE, "p1", Mark.NOT_RELEVANT, None, True),
    ]


def test_what_holds_has_a_sign_and_is_taken_back_by_another_press(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = label_of(run_of(Action.CORRECT), PAPER, Mark.RELEVANT, "now", target="p1")
    app = show(monkeypatch, Action.CORRECT, kept, route(Mark.WRONG, Action.INCORRECT))
    others = [":orange[AMBIGUOUS]", "**:red[INCORRECT] ✓**"]
    assert labels(app) == ["Right", "**Wrong ✓**", *others, "Right", "Wrong", "**Relevant ✓**", "Not relevant"]
    assert "take it back" in app.button[1].help
    for label in ("**Wrong ✓**", *others, "**Relevant ✓**"):
        press(app, label)
    assert said == [
        (About.ROUTE, "", Mark.WRONG, None, False),
        (About.ROUTE, "", Mark.WRONG, Action.AMBIGUOUS),
        (About.ROUTE, "", Mark.WRONG, None),
        (About.PASSAGE, "p1", Mark.RELEVANT, None, False),
    ]


@pytest.mark.parametrize(
    ("mark", "expected", "action", "chosen"),
    [
        (Mark.RIGHT, None, Action.CORRECT, ["**Right ✓**"]),
        (Mark.RIGHT, None, Action.INCORRECT, ["**Wrong ✓**", "**:green[CORRECT] ✓**"]),
        (Mark.WRONG, Action.INCORRECT, Action.INCORRECT, ["**Right ✓**"]),
        (Mark.WRONG, Action.INCORRECT, Action.AMBIGUOUS, ["**Wrong ✓**", "**:red[INCORRECT] ✓**"]),
        (Mark.WRONG, None, Action.CORRECT, ["**Wrong ✓**"]),
        (Mark.WRONG, None, Action.AMBIGUOUS, []),
    ],
)
def test_a_label_of_another_route_is_shown_for_what_it_says_of_this_one(
    said: Said, monkeypatch: pytest.MonkeyPatch, mark: Mark, expected: Action | None, action: Action, chosen: list[str]
) -> None:
    app = show(monkeypatch, action, route(mark, expected))
    assert [label for label in labels(app) if "✓" in label] == chosen
