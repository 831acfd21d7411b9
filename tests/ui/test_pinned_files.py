"""Files pinned on the Ask page: they are the evidence, whole, and nothing else is looked at unless asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from tests.ui.conftest import DOCUMENTS, Start, ask, header, settle, shown

PRICE = "What does a yacht of nine metres pay for a night?"


@pytest.fixture(scope="module")
def ids(home: Path) -> dict[str, str]:
    return {document.name: document.id for document in Workbench(Config(home=home)).store.documents()}


def pin(app: AppTest, *ids: str) -> AppTest:
    return app.multiselect(key="ask_pinned").set_value(list(ids)).run()


def sources(app: AppTest) -> list[str]:
    return [passage.source for passage in app.session_state["trace"].passages]


def test_pinned_file_is_the_whole_evidence(start: Start, ids: dict[str, str]) -> None:
    app = ask(pin(start(), ids["crane.txt"]), PRICE)
    assert not app.exception
    trace = app.session_state["trace"]
    assert sources(app) == ["crane.txt"] and trace.passages[0].text == DOCUMENTS["crane.txt"]
    assert trace.passages[0].found_by == ("read_file",)
    assert "CORRECT" not in header(app).replace("INCORRECT", "")
    app.session_state["record_drawer"] = True
    assert "1 of them whole files that you pinned" in shown(app.run())


def test_pinned_file_that_was_deleted_meanwhile_is_let_go(start: Start, tmp_path: Path) -> None:
    (tmp_path / "sample-indexed").touch()
    store = Workbench(Config(home=tmp_path)).store
    store.ingest([(name, text.encode()) for name, text in DOCUMENTS.items()])
    gone = next(document.id for document in store.documents() if document.name == "crane.txt")
    app = pin(start(CRAG_HOME=str(tmp_path)), gone)
    store.delete_all([gone])
    ask(app.run(), PRICE)
    assert not app.exception and not app.error
    assert sorted(sources(app)) == ["berths.csv", "harbour-dues.md"]


def test_file_deleted_at_the_last_moment_breaks_the_run_off_and_continuing_goes_without_it(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "sample-indexed").touch()
    store = Workbench(Config(home=tmp_path)).store
    store.ingest([(name, text.encode()) for name, text in DOCUMENTS.items()])
    gone = next(document.id for document in store.documents() if document.name == "crane.txt")
    app = pin(start(CRAG_HOME=str(tmp_path)), gone)
    store.delete_all([gone])
    ask(app, PRICE)
    assert not app.exception
    assert "broke off at “retrieve”" in "".join(str(error.title) for error in app.error)
    assert "choose the file again" in shown(app)
    app.button(key="ask_continue").click().run()
    settle(app)
    assert not app.error and sorted(sources(app)) == ["berths.csv", "harbour-dues.md"]
