"""A conversation on Ask: six turns, what each is understood as, what is asked back, and a new one."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from crag_core.trace.trace import Trace
from tests.ui.conftest import Start, ask, settle
from tests.ui.drawn import said


def press(app: AppTest, label: str) -> AppTest:
    next(button for button in app.button if button.label.replace("\\", "").endswith(label)).click()
    app.run()
    return settle(app)


def shown(app: AppTest) -> Trace:
    run: Trace = app.session_state["trace"]
    return run


def turns(app: AppTest) -> list[str]:
    return [button.label.replace("\\", "") for button in app.button if str(button.key).startswith("turn_")]


def test_six_turns_are_understood_from_each_other(start: Start) -> None:
    app = ask(start(), "What does a yacht of ten metres pay a night?")
    first = shown(app)
    assert first.follow_up is None and not turns(app)
    ask(app, "And a longer one?")
    unsure = shown(app)
    field = app.text_input(key=f"ask_understood_{unsure.id}")
    assert field.value == "And a longer one?" and "After “What does a yacht of ten metres pay a night?”" in said(app)
    assert unsure.passages and not unsure.grades and "Doubtful" in said(app) and "no one question is made" in said(app)
    assert not any("Generate" in button.label for button in app.button)
    field.set_value("What does a longer yacht pay a night?")
    press(app, "Ask this")
    run = shown(app)
    assert run.question == "What does a longer yacht pay a night?" and run.passages
    assert run.follow_up is not None and run.follow_up.by == "edited by you"
    assert "Understood as] What does a longer yacht pay a night?" in said(app)
    assert len(turns(app)) == 1 and "What does a yacht of ten" in turns(app)[0]

    ask(app, "Who keeps the harbour office on weekdays?")  # stands alone: asked at once
    assert shown(app).question == "Who keeps the harbour office on weekdays?" and shown(app).passages
    ask(app, "When is it open?")
    app.text_input(key=f"ask_understood_{shown(app).id}").set_value("When is the harbour office open?")
    press(app, "Ask this")
    ask(app, "How much does the crane lift?")
    ask(app, "And when is it inspected?")
    app.text_input(key=f"ask_understood_{shown(app).id}").set_value("When is the crane inspected?")
    press(app, "Ask this")
    last = shown(app)
    assert last.question == "When is the crane inspected?" and last.passages
    assert last.follow_up is not None and last.follow_up.history[0].question == first.question
    assert len(turns(app)) == 5

    press(app, turns(app)[1])
    assert shown(app).id == run.id and len(turns(app)) == 1, "its run, with what came before it"
    assert app.text_input(key="ask_question").value == "And a longer one?"
    press(app, "New")
    assert "trace" not in app.session_state or app.session_state["trace"] is None
    ask(app, "When is the crane inspected?")
    assert shown(app).follow_up is None


def test_what_nobody_can_understand_is_asked_back(start: Start) -> None:
    app = ask(start(), "And how high is it?")
    asked = shown(app)
    assert asked.asks_back == "What does “it” stand for?" and asked.passages is None
    assert "Asks back" in said(app) and "What does “it” stand for?" in said(app)
    ask(app, "The crane")
    field = app.text_input(key=f"ask_understood_{shown(app).id}")
    assert field.value == "How high is the crane?"
    press(app, "Ask this")
    assert shown(app).question == "How high is the crane?" and shown(app).passages
    press(app, turns(app)[0])
    press(app, "Ask anyway")
    assert shown(app).id == asked.id and shown(app).question == "And how high is it?" and shown(app).passages
