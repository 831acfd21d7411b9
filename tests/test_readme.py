"""The README keeps its word: its Python runs, its table of settings is the real one, its files and commands exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from crag_core.app.config import reference
from crag_core.base.types import Action

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.mark.embedding
def test_the_python_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRAG_HOME", str(tmp_path))
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block, names)
    assert names["trace"].decision.action is Action.INCORRECT, "the index of this test is empty"
    assert "nothing was retrieved" in capsys.readouterr().out


def test_the_llamaindex_examples_are_about_ten_lines() -> None:
    assert all(len(block.strip().splitlines()) <= 11 for block in blocks("python"))


def test_the_table_of_settings_is_the_real_one() -> None:
    table = README.partition("checked by tests/test_readme.py -->")[2].partition("<!-- /settings -->")[0].strip()
    assert table == reference(), "print(crag_core.app.config.reference()) between the two marks in README.md"


def test_the_files_that_the_readme_links_to_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_the_commands_of_the_readme_are_known() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    shell = "\n".join(blocks("bash"))
    for target in re.findall(r"^make (\w+)", shell, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    for script in re.findall(r"python (benchmarks/\S+\.py)", README):
        assert (ROOT / script).exists(), script
