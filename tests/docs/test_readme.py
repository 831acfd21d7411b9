"""README and documentation keep their word: the Python runs, files and commands exist, every page is in the index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.types.decisions import Action

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / "README.md", ROOT / "docs" / "README.md"]
PAGES += [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "README.md"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_python_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRAG_HOME", str(tmp_path))
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block, names)
    assert names["trace"].decision.action is Action.INCORRECT, "the index of this test is empty"
    assert "nothing was retrieved" in capsys.readouterr().out


def test_the_example_of_the_llamaindex_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "llamaindex.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(block, {})
    assert capsys.readouterr().out.split(" ")[-2:] == ["CORRECT", "AMBIGUOUS\n"]


def test_the_llamaindex_examples_are_about_ten_lines() -> None:
    assert all(len(block.strip().splitlines()) <= 11 for block in blocks("python"))


def test_it_is_short() -> None:
    assert len(README.split()) <= 1800


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_that_a_page_links_to_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_the_index_of_the_documentation_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    assert [page.name for page in PAGES[2:] if f"({page.name})" not in index] == []


def test_the_commands_of_the_readme_are_known() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    shell = "\n".join(blocks("bash"))
    for target in re.findall(r"^make (\w+)", shell, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    for script in re.findall(r"python (benchmarks/\S+\.py)", README):
        assert (ROOT / script).exists(), script
