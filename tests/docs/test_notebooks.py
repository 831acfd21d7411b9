"""The notebooks of examples/ run, and print what stands in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def words_and_scores(text: str) -> tuple[list[str], list[float]]:
    words, scores = re.split(r"\d\.\d\d", text), re.findall(r"\d\.\d\d", text)
    return words, [float(score) for score in scores]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_a_notebook_prints_what_stands_in_it(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        exec("".join(cell["source"]), names)
        words, scores = words_and_scores(capsys.readouterr().out)
        stand = "".join(line for output in cell["outputs"] for line in output["text"])
        assert (words, scores) == (words_and_scores(stand)[0], pytest.approx(words_and_scores(stand)[1], abs=0.02))
    assert len(cells) > 3


def test_there_is_one() -> None:
    assert [notebook.name for notebook in NOTEBOOKS] == ["llamaindex.ipynb"]
