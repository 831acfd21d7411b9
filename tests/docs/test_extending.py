"""What docs/extending.md promises: one class or function and one entry of one dict, and every way in knows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.__main__ import main
from crag_core.app import workbench
from crag_core.app.config import Config, load
from crag_core.app.workbench import Workbench
from crag_core.base.errors import BadRecord, ModelMissing, UnknownName
from crag_core.evaluators import EVALUATORS
from crag_core.evaluators.judges.llm import LLMEvaluator
from crag_core.retrieval.readers import READERS, Page, read_document
from crag_core.trace.trace import Trace
from crag_core.websearch import PROVIDERS
from tests.ui.conftest import new_process
from tests.word_embedder import WordEmbedder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
ADDED: tuple[tuple[dict[str, Any], str], ...] = (
    (EVALUATORS, "longest-word"),
    (PROVIDERS, "almanac"),
    (READERS, ".log"),
)
QUESTION = "When does the ferry to Vennick leave?"
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The examples of the page are run, for the length of a test, on an index that words embed."""
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    for name, value in {"CRAG_HOME": str(tmp_path / "home"), "CRAG_CACHE": "off", "OLLAMA_HOST": "127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    for registry, name in ADDED:
        monkeypatch.setitem(registry, name, None)
    for example in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(example, {})
    new_process()
    yield tmp_path / "home"
    new_process()


def ask(capsys: Output, *arguments: str) -> Trace:
    capsys.readouterr()
    assert main(["ask", QUESTION, "--json", *arguments]) == 0
    return Trace.from_json(capsys.readouterr().out)


def ingest(tmp_path: Path) -> None:
    (tmp_path / "ferry.txt").write_text("The ferry to Vennick leaves at nine.", "utf-8")
    assert main(["ingest", str(tmp_path / "ferry.txt")]) == 0


def test_the_page_is_short_and_names_every_dict() -> None:
    assert len(PAGE.splitlines()) <= 80
    assert all(registry[name] is not None for registry, name in ADDED)


# --- evaluators -----------------------------------------------------------------------------------------------------


def test_a_new_evaluator_grades_on_the_command_line(tmp_path: Path, capsys: Output) -> None:
    ingest(tmp_path)
    trace = ask(capsys, "--evaluator", "longest-word")
    assert trace.settings.evaluator.name == "longest-word"
    assert trace.grades is not None and [grade.reason for grade in trace.grades] == ["looked for 'vennick'"]
    with pytest.raises(SystemExit):
        main(["ask", "--help"])
    assert "longest-word" in capsys.readouterr().out


def test_a_new_evaluator_is_offered_in_the_sidebar(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WordEmbedder, "load", lambda embedder: None, raising=False)
    home.mkdir()
    (home / "sample-indexed").touch()
    app = AppTest.from_file(ROOT / "app.py", default_timeout=60)
    app.query_params["evaluator"] = "longest-word"
    assert not app.run().exception
    assert "Longest word" in app.selectbox(key="evaluator").options
    assert app.selectbox(key="evaluator").value == "longest-word"
    assert app.session_state["thresholds"] == (0.4, 0.6)


def test_an_unknown_evaluator_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownName, match=r"Unknown evaluator 'longest'. Did you mean 'longest-word'\? Known: cross-"):
        Workbench(Config()).evaluator("longest", None)


def test_an_evaluator_that_asks_a_model_refuses_to_be_built_without(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(LLMEvaluator):
        pass

    monkeypatch.setitem(EVALUATORS, "mine", Mine)
    with pytest.raises(ModelMissing, match="The evaluator 'llm' needs a language model"):
        Workbench(Config()).evaluator("mine", None)
    server = workbench.Workbench(Config()).servers.model("ollama/one")
    assert isinstance(Workbench(Config(cache="off")).evaluator("mine", server), Mine)


# --- web providers --------------------------------------------------------------------------------------------------


def test_a_new_provider_is_asked(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_WEB_PROVIDERS", "almanac")
    trace = ask(capsys, "--web", "auto", "--evaluator", "longest-word")
    assert trace.web is not None and trace.web.provider == "Almanac"
    assert trace.web.passages is not None and trace.web.passages[0].source == "Ferries"


def test_settings_know_a_new_provider_and_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load({"CRAG_WEB_PROVIDERS": "duckduckgo, almanac"}).providers == ("duckduckgo", "almanac")
    with pytest.raises(BadRecord, match=r"'almanak'. Did you mean 'almanac'\? Known: almanac, duckduckgo"):
        load({"CRAG_WEB_PROVIDERS": "almanak"})
    monkeypatch.setattr(PROVIDERS["almanac"], "needs", "CRAG_WEB_SNAPSHOT")
    with pytest.raises(BadRecord, match="names almanac, and CRAG_WEB_SNAPSHOT is not set"):
        load({"CRAG_WEB_PROVIDERS": "almanac"})
    one, same, other = (
        Workbench(load({"CRAG_WEB_PROVIDERS": "almanac", "CRAG_WEB_SNAPSHOT": place})) for place in ("a", "a", "b")
    )
    one.using(other.config)._searchers = one._searchers
    assert one.searcher is one.using(same.config).searcher is not one.using(other.config).searcher


def test_the_settings_reference_lists_the_providers_of_the_dict() -> None:
    settings = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert f"who is asked, in order: {', '.join(name for name in PROVIDERS if name != 'almanac')};" in settings


# --- documents ------------------------------------------------------------------------------------------------------


def test_a_new_format_is_read() -> None:
    assert read_document(b"nine|ten\x00", "harbour.log") == (Page("nine ten\x00"),)
