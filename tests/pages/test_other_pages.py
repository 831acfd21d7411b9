"""Documents and Settings through app.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import DOCUMENTS, shown
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]


def upload(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    app.file_uploader[0].set_value([(name, content, "application/octet-stream") for name, content in files])
    app.run()
    next(button for button in app.button if button.label.startswith("Index")).click()
    app.run()
    app.session_state["indexing"].wait()
    return app.run()


def test_documents_are_listed_with_their_passages(start: Start) -> None:
    app = start("pages/documents.py")
    assert not app.exception
    assert f"{len(DOCUMENTS)} documents" in shown(app)


def test_one_bad_file_does_not_stop_the_others(start: Start, tmp_path: Path) -> None:
    (tmp_path / "sample-indexed").touch()
    app = start("pages/documents.py", CRAG_HOME=str(tmp_path))
    upload(
        app, ("good.md", b"# Ferry\n\nThe ferry sails at nine."), ("bad.pdf", b"<html>no pdf</html>"), ("x.exe", b"MZ")
    )
    text = shown(app)
    assert not app.exception
    assert "good.md" in text and "indexed, 1 passage" in text
    assert "bad.pdf" in text and "x.exe" in text
    assert "1 document" in text
    upload(app, ("good.md", b"# Ferry\n\nThe ferry sails at nine."))
    assert "already indexed" in shown(app)


def test_the_first_start_indexes_the_sample_documents(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = start(CRAG_HOME=str(tmp_path))
    from ui import state

    warming = state.warm_up()
    warming.wait()
    app.run()
    assert not app.exception
    assert warming.error is None and warming.bug is None
    assert {outcome.outcome.value for outcome in warming.outcomes} == {"indexed"}
    assert len(warming.outcomes) >= 20
    assert (tmp_path / "sample-indexed").exists()


def test_settings_show_every_variable_and_take_another_host(start: Start) -> None:
    app = start("pages/settings.py")
    assert not app.exception
    with OllamaServer(ScriptedModel(["hello"])) as server:
        app.text_input[0].set_value(server.url)
        next(button for button in app.button if button.label == "Use these").click()
        app.run().run()
        assert "Ollama answers with 1 model" in shown(app)
        assert "ollama/smollm2:135m" in app.selectbox(key="model").options[0].replace(": ", "/", 1)
