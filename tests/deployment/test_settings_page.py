"""docs/settings.md has every setting, its default and an example that can be used; the command shows no secret."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from crag_core.__main__ import main
from crag_core.app.config import Config, load
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "settings.md").read_text("utf-8").partition("## Of others")[0]
ROWS = [[cell.strip() for cell in line.split("|")[1:6]] for line in PAGE.splitlines() if line.startswith("| `")]
EXAMPLES = {row[0].strip("`"): row[2].strip("`") for row in ROWS}
NOWHERE = Path("no-such-folder/.env")


def test_the_page_has_every_setting_with_its_default_and_marks_what_is_secret() -> None:
    for field, (variable, default, _, marks, meaning) in zip(fields(Config), ROWS, strict=True):
        assert variable == f"`{field.metadata['variable']}`" and meaning
        assert default == (f"`{field.default}`" if str(field.default) else "(empty)"), variable
        assert ("secret" in marks) is not field.repr, variable


def test_every_example_can_be_used_and_none_is_the_default() -> None:
    default = Config()
    together = EXAMPLES | {"CRAG_VECTOR_STORE": ""}  # which CRAG_RETRIEVER excludes
    assert load(together, NOWHERE)
    for field in fields(Config):
        variable = field.metadata["variable"]
        needed = {name: EXAMPLES[name] for name in ("CRAG_SEARXNG_URL",) if variable == "CRAG_WEB_PROVIDERS"}
        given = load({variable: EXAMPLES[variable], **needed}, NOWHERE)
        changed = {one.name for one in fields(Config) if getattr(given, one.name) != getattr(default, one.name)}
        assert changed - {"searxng_url"} <= {field.name} and field.name in changed


def test_what_is_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for field in fields(Config):
        example = EXAMPLES[field.metadata["variable"]]
        monkeypatch.setenv(field.metadata["variable"], example if field.repr else re.sub(r"\w+$", "9", example))
    monkeypatch.delenv("CRAG_VECTOR_STORE")
    monkeypatch.setenv("OPENAI_API_KEY", "hidden-key")
    monkeypatch.setenv("CRAG_SERVICE_TOKEN", "hidden-token-of-16-signs")
    assert main(["settings"]) == 0
    shown = capsys.readouterr().out
    assert "hidden" not in shown and "s3cret" not in shown
    assert "OPENAI_API_KEY=(set, not shown)" in shown and "CRAG_TOP_K=8\n" in shown
