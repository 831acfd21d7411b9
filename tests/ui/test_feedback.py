"""The buttons for labels: what each press tells, what they show, and that nobody needs colour to read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types.decisions import Action
from crag_core.experiments.labelled.questions import Expected
from crag_core.trace.feedback import About, Mark, of_route
from tests.builders import policy, trace

PAPER = policy("paper")


def passages() -> None:
    """Two cards, and a place where the labels are kept."""
    import streamlit as st

    from ui.run.feedback import draw_passage_feedback

    kept = st.session_state.setdefault("kept", {})
    told = st.session_state.setdefault("told", [])

    def on_label(passage_id: str, mark: object) -> None:
        told.append((passage_id, mark))
        kept[passage_id] = mark

    for passage_id in ("p1", "<b>p2</b> \x00 東京"):
        draw_passage_feedback(passage_id, kept.get(passage_id), on_label)


def one_run() -> None:
    import streamlit as st

    from ui.run.feedback import draw_run_feedback

    state = st.session_state
    told = state.setdefault("told", [])
    draw_run_feedback(
        state["route"], state["answer"], state["action"], lambda *said: told.append(said), state.get("has_answer", True)
    )


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def press(app: AppTest, label: str, nth: int = 0) -> AppTest:
    [button for button in app.button if button.label == label][nth].click()
    app.run()
    assert not app.exception
    return app


def test_a_second_press_changes_the_label_and_a_third_takes_it_back() -> None:
    app = AppTest.from_function(passages).run()
    assert labels(app) == ["Relevant", "Not relevant"] * 2
    press(app, "Relevant")
    assert labels(app) == ["**Relevant ✓**", "Not relevant", "Relevant", "Not relevant"]
    press(app, "Not relevant")
    assert labels(app) == ["Relevant", "**Not relevant ✓**", "Relevant", "Not relevant"]
    press(app, "**Not relevant ✓**")
    assert labels(app) == ["Relevant", "Not relevant"] * 2
    assert app.session_state["told"] == [("p1", Mark.RELEVANT), ("p1", Mark.NOT_RELEVANT), ("p1", None)]


def test_each_card_has_its_own_label() -> None:
    app = press(AppTest.from_function(passages).run(), "Not relevant", nth=1)
    assert labels(app) == ["Relevant", "Not relevant", "Relevant", "**Not relevant ✓**"]
    assert app.session_state["told"] == [("<b>p2</b> \x00 東京", Mark.NOT_RELEVANT)]


def test_every_button_says_what_it_does() -> None:
    app = press(AppTest.from_function(passages).run(), "Relevant")
    assert "take it back" in app.button[0].help
    assert all("changes nothing in this run" in button.help for button in app.button[1:])


@pytest.fixture
def show() -> Callable[..., AppTest]:
    def draw(action: Action = Action.CORRECT, mark: Mark | None = None, **state: object) -> AppTest:
        """With a label of CORRECT, whatever is on the screen."""
        expected = state.pop("expected", None)
        made = mark and of_route(trace(PAPER), PAPER, Action.CORRECT, mark, "now", expected)  # type: ignore[arg-type]
        app = AppTest.from_function(one_run)
        for name, value in {"action": action, "route": made, "answer": None, **state}.items():
            app.session_state[name] = value
        app.run()
        assert not app.exception
        return app

    return draw


PLAIN = ["Right", "Wrong", "Right", "Wrong"]


def test_route_and_answer_are_judged_apart(show: Callable[..., AppTest]) -> None:
    app = show()
    assert labels(app) == PLAIN
    press(press(press(app, "Right"), "Wrong"), "Right", nth=1)
    assert app.session_state["told"] == [
        (About.ROUTE, Mark.RIGHT, None),
        (About.ROUTE, Mark.WRONG, None),
        (About.ANSWER, Mark.RIGHT, None),
    ]


def test_a_wrong_route_asks_what_it_should_have_been(show: Callable[..., AppTest]) -> None:
    app = show(mark=Mark.WRONG)
    others = [":orange[AMBIGUOUS]", ":red[INCORRECT]"]
    assert labels(app) == ["Right", "**Wrong ✓**", *others, "Right", "Wrong"]
    press(press(app, others[1]), "**Wrong ✓**")
    assert app.session_state["told"] == [(About.ROUTE, Mark.WRONG, Action.INCORRECT), (About.ROUTE, None, None)]


def test_the_expected_route_is_taken_back_alone(show: Callable[..., AppTest]) -> None:
    app = show(mark=Mark.WRONG, expected=Action.INCORRECT)
    press(app, "**:red[INCORRECT] ✓**")
    assert app.session_state["told"] == [(About.ROUTE, Mark.WRONG, None)]


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
    show: Callable[..., AppTest], mark: Mark, expected: Action | None, action: Action, chosen: list[str]
) -> None:
    app = show(action, mark, expected=expected)
    assert [label for label in labels(app) if "✓" in label] == chosen


def test_without_an_answer_only_the_route_is_judged(show: Callable[..., AppTest]) -> None:
    assert labels(show(has_answer=False)) == ["Right", "Wrong"]
    assert labels(show(answer=Mark.WRONG)) == ["Right", "Wrong", "Right", "**Wrong ✓**"]


# --- one's own set --------------------------------------------------------------------------------------------------


def own_row() -> None:
    import streamlit as st

    from ui.run.feedback import draw_own_label

    def on_label(expected: object) -> None:
        st.session_state["own"] = expected

    draw_own_label("<b>my</b> set", st.session_state.get("own"), on_label)


def test_one_click_labels_the_question_and_another_changes_it() -> None:
    app = AppTest.from_function(own_row).run()
    assert labels(app) == ["Answered", "On topic only", "Off topic"] and "Add to my set" in app.markdown[0].value
    press(app, "On topic only")
    assert labels(app) == ["Answered", "**On topic only ✓**", "Off topic"]
    assert app.session_state["own"] is Expected.AMBIGUOUS and "<b>" not in app.markdown[0].value
    press(app, "Off topic")
    assert labels(app) == ["Answered", "On topic only", "**Off topic ✓**"]
    press(app, "**Off topic ✓**")
    assert app.session_state["own"] is None and "Add to my set" in app.markdown[0].value
