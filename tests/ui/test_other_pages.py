"""Documents and Settings through app.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.data_files import DATA
from crag_core.base.documents import Ingested, IngestOutcome
from crag_core.retrieval.index.store import PassageStore
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import Start, finished, press, shown


def upload(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    app.file_uploader[0].set_value([(name, content, "application/octet-stream") for name, content in files])
    app.run()
    next(button for button in app.button if button.label.startswith("Index")).click()
    app.run()
    return finished(app, "indexing")


def test_one_bad_file_does_not_stop_the_others(start: Start, tmp_path: Path) -> None:
    (tmp_path / "sample-indexed").touch()
    app = start("pages/documents.py", CRAG_HOME=str(tmp_path))
    upload(
        app, ("good.md", b"# Ferry\n\nThe ferry sails at nine."), ("bad.pdf", b"<html>no pdf</html>"), ("x.exe", b"MZ")
    )
    text = shown(app)
    assert not app.exception
    assert "good.md" in text and "indexed, 1 chunk" in text
    assert "bad.pdf" in text and "x.exe" in text
    assert "1 document" in text
    upload(app, ("good.md", b"# Ferry\n\nThe ferry sails at nine."))
    assert "already indexed, 1 chunk" in shown(app)
    upload(app, ("tide.md", b"# Tide\n\nHigh water is at six."))
    upload(app, ("tide.md", b"# Ferry\n\nThe ferry sails at nine."))
    assert "already indexed as good" in shown(app) and "the older version of this name was removed" in shown(app)


def test_the_first_start_indexes_the_sample_documents(start: Start, tmp_path: Path) -> None:
    app = start(CRAG_HOME=str(tmp_path))
    from ui.session import startup

    warming = startup.warm_up()
    warming.wait()
    app.run()
    assert not app.exception
    assert warming.error is None and warming.bug is None
    assert {outcome.outcome.value for outcome in warming.result} == {"indexed"}
    assert len(warming.result) >= 20
    assert (tmp_path / "sample-indexed").exists()


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "stopped before any"])
def test_a_first_start_that_ends_with_files_left_out_is_not_over(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    left = [Ingested(path.name, IngestOutcome.REFUSED) for path in (DATA / "sample").iterdir() if is_refused]
    monkeypatch.setattr(PassageStore, "ingest", lambda *_, **__: tuple(left))
    start(CRAG_HOME=str(tmp_path))
    from ui.session import startup

    startup.warm_up().wait()
    assert startup.warm_up().error is None and not (tmp_path / "sample-indexed").exists()


def test_documents_of_ones_own_are_not_joined_by_the_samples(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workbench(Config(home=tmp_path)).store.ingest([("mine.md", b"The ferry sails at nine.")])
    monkeypatch.setattr(PassageStore, "ingest", lambda *_, **__: pytest.fail("the samples were indexed"))
    start(CRAG_HOME=str(tmp_path))
    from ui.session import startup

    warming = startup.warm_up()
    warming.wait()
    assert warming.bug is None and warming.error is None and warming.result == ()


# --- settings -------------------------------------------------------------------------------------------------------

OLLAMA, PROVIDERS, SEARXNG = "Ollama address", "Web search providers, in order", "SearXNG address"


def fill(app: AppTest, **values: str) -> AppTest:
    """Fill fields by the variable that stands for them, and press the button."""
    labels = {"ollama": OLLAMA, "providers": PROVIDERS, "searxng": SEARXNG}
    for name, value in values.items():
        next(field for field in app.text_input if field.label == labels[name]).set_value(value)
    return press(app, "Apply")


def refusals(app: AppTest) -> str:
    return " ".join(str(error.value) for error in app.error).replace("\\", "")


def test_settings_say_where_the_variables_are_listed_and_take_another_host(start: Start) -> None:
    app = start("pages/settings.py")
    assert not app.exception and not app.table
    assert "docs/settings.md" in shown(app)
    with OllamaServer(ScriptedModel(["hello"])) as server:
        fill(app, ollama=server.url)
        assert "Ollama, 1 model" in shown(app)
        assert "ollama/smollm2:135m" in app.selectbox(key="model").options[0].replace(": ", "/", 1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"providers": "duckduckgo, bing"}, "search provider 'bing'. Known: duckduckgo, searxng, snapshot, tavily."),
        ({"providers": "searxng"}, "names searxng, and CRAG_SEARXNG_URL is not set"),
        ({"providers": "searxng", "searxng": "http://user:s3cret@box:x"}, "expected an address such as"),
    ],
)
def test_setting_of_no_use_is_refused_and_changes_nothing(start: Start, values: dict[str, str], words: str) -> None:
    app = start("pages/settings.py", CRAG_WEB="ask")
    before = app.session_state["config"]
    fill(app, ollama="127.0.0.1:8", **values)
    assert not app.exception
    assert words in refusals(app)
    assert "s3cret" not in refusals(app)
    assert app.session_state["config"] == before, "not even the fields that were right"
    assert "DuckDuckGo, not asked yet" in shown(app)
    assert fill(app, providers="duckduckgo", searxng="").session_state["config"] != before, "the form still works"


def test_who_checks_an_answer_is_chosen_from_the_models_that_are_there(start: Start) -> None:
    with OllamaServer(ScriptedModel(["hello"])) as server:
        app = start("pages/settings.py", OLLAMA_HOST=server.url)
        box = next(one for one in app.selectbox if one.label == "Answer checked by")
        assert box.options == ["Word overlap, 0 LLM calls", "ollama: smollm2:135m"] and box.value == "words"
        box.set_value("ollama/smollm2:135m")
        press(app, "Apply")
        assert refusals(app) == "" and app.session_state["config"].support == "ollama/smollm2:135m"
