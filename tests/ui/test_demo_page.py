"""The Demo page: the list, one story on the whole window, links to a step, and the way back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from tests.ui.conftest import Start, press, shown
from tests.ui.drawn import parts
from ui.session.demos import demos

PAGE = "pages/demo.py"


def opened(start: Start, **address: str) -> AppTest:
    return start(PAGE, policy="", address=address).run()


def stories(app: AppTest) -> list[dict]:  # type: ignore[type-arg]
    assert not app.exception
    return parts(app, "crag_story")


def test_the_list_offers_all_and_one_opens(start: Start) -> None:
    app = start(PAGE, policy="")
    assert stories(app) == [] and all(one.title in shown(app) for one in demos())
    press(app, "Play")
    (data,) = stories(app)
    assert data["story"]["id"] == demos()[0].trace.id and data["start"] == 0
    assert app.query_params["run"] == demos()[0].trace.id


@pytest.mark.parametrize("demo", demos(), ids=lambda one: one.trace.id)
def test_a_link_to_each_recorded_one_opens_it_at_its_step(start: Start, demo) -> None:  # type: ignore[no-untyped-def]
    (data,) = stories(opened(start, run=demo.trace.id, step="4"))
    assert data["start"] == 3 and data["links"]
    assert data["story"]["title"] == demo.title and data["story"]["tells_ending"]
    assert not data["story"]["steps"][0].get("note")
    assert data["story"]["steps"][-1]["id"] == ("policies" if demo.other else "bar")


def errors(app: AppTest) -> str:
    return "".join(str(error.value) for error in app.error).replace("\\", "")


def test_a_kept_run_opens_from_its_link(start: Start, own: Path) -> None:
    kept = replace(demos()[1].trace, id="run-of-mine")
    Workbench(Config(home=own)).history.save(kept, "")
    app = start(PAGE, policy="", address={"run": "run-of-mine"}, CRAG_HOME=str(own)).run()
    (data,) = stories(app)
    assert data["links"] and data["story"]["title"] == "A run of your own"
    app.text_input(key="story_name").set_value("For the board").run()
    assert stories(app)[0]["story"]["title"] == "For the board"


def test_a_name_of_a_story_is_of_no_recorded_one(start: Start) -> None:
    app = opened(start, run=demos()[0].trace.id)
    assert "story_name" not in [field.key for field in app.text_input]


def test_the_next_one_follows_and_the_last_leads_to_the_first(start: Start) -> None:
    app = opened(start, run=demos()[-1].trace.id)
    press(app, f"Next: {demos()[0].title}")
    (data,) = stories(app)
    assert data["story"]["id"] == demos()[0].trace.id


def test_first_page_offers_three_as_pictures_and_one_plays_as_a_story(start: Start) -> None:
    app = start(policy="")
    assert [one.title in shown(app) for one in demos()[:3]] == [True] * 3
    pictures = parts(app, "crag_path")
    assert [one["is_small"] for one in pictures] == [True] * 3
    assert [one["label"].split(", ")[2] for one in pictures] == ["CORRECT", "AMBIGUOUS", "INCORRECT"]
    press(app, "Play")
    assert not app.exception
    (story,) = parts(app, "crag_story")
    assert story["story"]["id"] == demos()[0].trace.id
