"""docs/settings.md is what the settings are; the command settings shows those that hold, and no secret."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from crag_core.__main__ import main
from crag_core.app.cli.settings import page
from crag_core.app.config import Config, load
from tests.app.test_settings_from_environment import GIVEN
from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "settings.md"
SECRET = {"OPENAI_API_KEY", "TAVILY_API_KEY", "CRAG_HISTORY", "CRAG_CACHE", "CRAG_SERVICE_TOKEN"}
EXAMPLES = {field.metadata["variable"]: field.metadata["example"] for field in fields(Config)}
TOGETHER = EXAMPLES | {"CRAG_VECTOR_STORE": ""}  # which CRAG_RETRIEVER excludes
LISTS = [field.metadata["variable"] for field in fields(Config) if field.metadata["is_list"]]
NOWHERE = Path("no-such-folder/.env")


def test_the_page_is_the_one_of_these_settings() -> None:
    assert PAGE.read_text("utf-8") == page() + "\n", "python -m crag_core settings --markdown > docs/settings.md"


def test_all_examples_can_be_used_together_and_none_is_the_default() -> None:
    assert load(TOGETHER, NOWHERE)
    default = Config()
    for field in fields(Config):
        variable = field.metadata["variable"]
        needed = {name: EXAMPLES[name] for name in ("CRAG_SEARXNG_URL",) if variable == "CRAG_WEB_PROVIDERS"}
        given = load({variable: EXAMPLES[variable], **needed}, NOWHERE)
        assert getattr(given, field.name) != getattr(default, field.name), variable


@pytest.mark.parametrize("name", LISTS)
def test_a_list_takes_several(name: str) -> None:
    values = {
        "CRAG_WEB_PROVIDERS": "duckduckgo,tavily",
        "CRAG_SERVICE_TOKEN": "0123456789abcdef,fedcba9876543210",
        "CRAG_SERVICE_HOSTS": "crag.example.org,[::1]",
        "CRAG_SERVICE_ORIGINS": "https://a.example.org,http://localhost:3000",
        "CRAG_EVALUATORS": "hf:a/b,hf:/srv/judge",
    }
    load({"TAVILY_API_KEY": "x", name: values.get(name, "ann@example.org,@example.com")}, NOWHERE)


def test_what_is_secret_is_marked_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    marked = {line.split("`")[1] for line in page().splitlines() if line.startswith("| `") and "| secret" in line}
    assert marked >= SECRET
    for name, (text, _) in GIVEN.items():
        monkeypatch.setenv(name, text.replace("box", "hidden-box") if name in marked else text)
    monkeypatch.delenv("CRAG_VECTOR_STORE")  # which CRAG_RETRIEVER excludes
    monkeypatch.setenv("OPENAI_API_KEY", "hidden-key")
    assert main(["settings"]) == 0
    shown = capsys.readouterr().out
    assert "hidden" not in shown and "OPENAI_API_KEY=(set, not shown)" in shown and "CRAG_TOP_K=20\n" in shown
