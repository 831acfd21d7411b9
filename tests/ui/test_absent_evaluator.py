"""The app where the files of the trained evaluator are not there: it says so, keeps what it has, and goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.evaluators import shipped
from crag_core.evaluators.policies import OWN_JUDGE
from crag_core.evaluators.shipped import EVALUATOR_FOLDER
from tests.ui.conftest import ask, press, shown

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "What does a yacht of nine metres pay for a night?"


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "EVALUATOR_FOLDER", tmp_path / "nowhere")


def test_the_app_starts_and_the_run_says_what_is_missing_and_what_to_do(start: Start) -> None:
    app = start()
    assert not app.exception and app.selectbox(key="evaluator").value == OWN_JUDGE
    text = shown(ask(app, PRICE))
    assert not app.exception
    assert "The trained evaluator is not there: expected its file evaluator.json" in text
    assert "Restore data/models/retrieval-evaluator from the repository." in text
    assert app.session_state["trace"].passages and app.session_state["job"] is None


def test_when_the_files_are_back_the_run_continues(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    app = ask(start(), PRICE)
    found = app.session_state["trace"].passages
    monkeypatch.setattr(shipped, "EVALUATOR_FOLDER", EVALUATOR_FOLDER)
    press(app, "Continue from here")
    done = app.session_state["trace"]
    assert not app.exception and done.failure is None
    assert done.passages == found and done.grades and done.answer is not None
