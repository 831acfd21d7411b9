"""The runs that come with the application: each plays, decides as it was recorded, and needs nothing to do so."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types import Step
from crag_core.pipeline.run import Listener, Run
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from tests.ui.conftest import APP, header, press, settle, shown
from tests.ui.drawn import parts
from ui.session import demos as replay
from ui.session.demos import FOLDER, Demo, demos

Start = Callable[..., AppTest]


@pytest.fixture(params=range(len(list(FOLDER.glob("*.json")))))
def demo(request: pytest.FixtureRequest) -> Demo:
    return demos()[request.param]


def test_decision_and_answer_are_those_of_the_record(demo: Demo) -> None:
    again = reroute(demo.trace, demo.trace.settings.policy)
    assert demo.trace.decision and again.decision.decides_like(demo.trace.decision)
    assert demo.trace.answer is not None and again.answer == demo.trace.answer


def test_every_run_that_is_there_is_listed_under_an_id_of_its_own() -> None:
    ids = {one.trace.id for one in demos()}
    assert ids == {f"demo-{path.stem}" for path in FOLDER.glob("*.json")}


def test_playing_tells_every_step_in_order_and_ends_with_the_whole_record(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SHORTEST", "_LONGEST", "_WORD"):
        monkeypatch.setattr(replay, name, 0.0)
    told: list[tuple[Step, Trace]] = []
    written: list[str] = []

    class Heard(Listener):
        def finished(self, step: Step, trace: Trace) -> None:
            told.append((step, trace))

        def wrote(self, piece: str) -> None:
            written.append(piece)

    assert replay.play(demo.trace, Run(Heard(), Event())) == demo.trace
    assert tuple(step for step, _ in told) == demo.trace.steps
    assert told[-1][1] == demo.trace
    assert demo.trace.answer and "".join(written).strip() == demo.trace.answer.text


def test_nothing_is_known_before_its_step(demo: Demo) -> None:
    first, second = replay.so_far(demo.trace, 0), replay.so_far(demo.trace, 1)
    assert (first.passages, first.decision, first.answer) == (None, None, None)
    assert second.passages == demo.trace.passages and second.grades is None


def test_a_stopped_replay_shows_the_end_at_once(demo: Demo) -> None:
    stopped = Event()
    stopped.set()
    assert replay.play(demo.trace, Run(Listener(), stopped)) == demo.trace


def test_first_page_offers_them_and_one_plays_with_its_own_settings(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SHORTEST", "_LONGEST", "_WORD"):
        monkeypatch.setattr(replay, name, 0.0)
    app = start(policy="")
    assert [one.title in shown(app) for one in demos()[:3]] == [True] * 3
    pictures = parts(app, "crag_path")
    assert [one["is_small"] for one in pictures] == [True] * 3
    assert [one["label"].split(", ")[2] for one in pictures] == ["CORRECT", "AMBIGUOUS", "INCORRECT"]
    press(app, "Play")
    shown_first = demos()[0].trace
    assert not app.exception and app.session_state["trace"] == shown_first
    assert shown_first.decision and shown_first.decision.action in header(app)
    assert app.session_state["ask_question"] == shown_first.question


def test_a_link_to_one_opens_it(start: Start) -> None:
    app = AppTest.from_file(APP, default_timeout=60)
    start(policy="")  # the environment of the tests
    wanted = demos()[2].trace
    app.query_params["run"] = wanted.id
    settle(app.run())
    assert not app.exception and app.session_state["trace"].id == wanted.id
    assert wanted.decision and wanted.decision.action in header(app)


def test_a_link_to_no_run_says_so(start: Start) -> None:
    app = AppTest.from_file(APP, default_timeout=60)
    start(policy="")
    app.query_params["run"] = "nowhere"
    app.run()
    assert "is not kept here" in "".join(str(error.value).replace("\\", "") for error in app.error)
