"""Policy files of a test's own, in place of those in data/policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from crag_core.policies import FOLDER, load_policies

PAPER = (FOLDER / "paper.toml").read_text("utf-8")


def paper_with(old: str, new: str) -> str:
    """The file of the policy `paper` with one thing in it changed."""
    assert old in PAPER
    return PAPER.replace(old, new, 1)


def use_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Policies now come from `folder`, which holds `paper` to begin with."""
    folder.mkdir(exist_ok=True)
    (folder / "paper.toml").write_text(PAPER, "utf-8")
    monkeypatch.setattr(load_policies, "__defaults__", (folder, None))  # wherever it was imported to
    return folder
