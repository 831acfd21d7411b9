"""The runs that come with the application: each decides as it was recorded, and needs nothing to do so."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from tests.ui.conftest import press, shown
from tests.ui.drawn import parts
from ui.session.demos import demos

Start = Callable[..., AppTest]


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
