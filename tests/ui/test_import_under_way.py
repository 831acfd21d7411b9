"""A record that comes in under the id of a run that goes on: neither takes the place of the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.background_jobs import job_of
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.trace.trace import Trace
from tests import builders

OWN = builders.trace(builders.policy("paper"), id="run-under-way", answer=None)
FORGED = replace(OWN, question="Is the boss a fool?")
ON_ASK, ON_HISTORY = "", "pages/history.py"


@pytest.fixture
def goes_on(own: Path) -> Iterator[Callable[[], Trace | None]]:
    """Puts a run under way into a running application; what is called then ends it and gives what is kept of it."""
    wakes, history = threading.Event(), Workbench(Config(home=own)).history
    from ui.session import background

    job = None

    def end() -> Trace | None:
        wakes.set()
        assert job is not None
        job.wait()
        return history.load(OWN.id)

    def work(run: object) -> Trace:
        wakes.wait(60)
        return OWN

    def begin() -> Callable[[], Trace | None]:
        nonlocal job
        job = job_of(work, OWN, history.save)
        job.start()
        background.live()["run", OWN.id] = job
        return end

    yield begin  # type: ignore[misc]
    wakes.set()


@pytest.mark.parametrize("page", [ON_ASK, ON_HISTORY])
def test_an_import_under_the_id_of_a_run_that_goes_on_gets_another(
    start: Callable[..., AppTest], own: Path, goes_on: Callable[[], Callable[[], Trace | None]], page: str
) -> None:
    app = start(page, CRAG_HOME=str(own))
    end = goes_on()
    app.file_uploader[0].set_value(("run.json", FORGED.to_json().encode(), "application/json")).run()
    for button in app.button:
        if button.label.startswith("Import"):
            button.click()
            app.run()
            break
    assert not app.exception
    history = Workbench(Config(home=own)).history
    (imported,) = [kept for kept in history.search() if kept.question == FORGED.question]
    assert imported.id.startswith("imported-") and imported.is_imported
    kept = end()
    assert kept == OWN
    found = {one.id: one for one in history.search()}
    assert not found[OWN.id].is_imported and found[imported.id].question == FORGED.question
    assert json.loads(history.load(imported.id).to_json())["id"] == imported.id  # type: ignore[union-attr]
