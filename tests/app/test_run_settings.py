"""Under what questions are run: all that an answer depends on, and whoever is asked for pages of the web."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.app import workbench as build
from crag_core.app.choice import read_configuration
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from tests.word_embedder import WordEmbedder


@pytest.fixture
def workbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    return Workbench(Config(home=tmp_path / "home"))


def choice(text: str, workbench: Workbench) -> Choice:
    return read_configuration(text, workbench).choice


def web(folder: Path, text: str) -> str:
    folder.mkdir(exist_ok=True)
    page = {"url": "https://example.org/ferry", "title": "Ferry", "text": text}
    (folder / "web.jsonl").write_text(json.dumps(page) + "\n", "utf-8")
    return str(folder)


def test_it_holds_the_settings_of_a_run_and_the_documents_of_now(workbench: Workbench) -> None:
    chosen = choice("paper,upper=0.9,top_k=4", workbench)
    setup = workbench.setup(chosen)
    assert setup.settings == workbench.engine(chosen).settings and setup.settings.top_k == 4
    assert setup.corpus == workbench.store.fingerprint()
    workbench.store.ingest([("new.txt", b"The pilot boat is orange.")])
    assert workbench.setup(chosen).fingerprint != setup.fingerprint
    assert workbench.setup(chosen, "known").corpus == "known"


def test_nobody_is_asked_for_pages_of_the_web_where_it_is_off(workbench: Workbench) -> None:
    assert workbench.setup(choice("paper", workbench)).web == ""
    searching = workbench.setup(choice("paper,web=auto", workbench))
    assert (
        searching.web == "DuckDuckGo"
        and searching.fingerprint != workbench.setup(choice("paper", workbench)).fingerprint
    )


def test_an_offline_web_is_told_by_its_content(workbench: Workbench, tmp_path: Path) -> None:
    def setup_with(**changes: str) -> str:
        other = workbench.using(replace(workbench.config, **changes))  # type: ignore[arg-type]
        return other.setup(choice("paper,web=auto", other)).web

    one = setup_with(web_providers="snapshot", web_snapshot=web(tmp_path / "one", "It leaves at nine."))
    same = setup_with(web_providers="snapshot", web_snapshot=web(tmp_path / "same", "It leaves at nine."))
    other = setup_with(web_providers="snapshot", web_snapshot=web(tmp_path / "other", "It leaves at ten."))
    assert one.startswith("Offline web ") and one == same != other
    both = setup_with(web_providers="snapshot,duckduckgo", web_snapshot=str(tmp_path / "one"))
    assert both == f"{one}, DuckDuckGo"
