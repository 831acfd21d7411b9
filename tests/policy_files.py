"""Policy files of a test's own, in place of those in data/policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from crag_core.evaluators import policies

PAPER = """\
title = "Paper"
summary = "The best passage decides; refined evidence, and the web when in doubt."
source = "Yan et al. 2024"
evaluator = "embedding"
labels = ["Correct", "Ambiguous", "Incorrect"]
score = "best"
lower = 0.40
upper = 0.55
correct = ["refine"]
ambiguous = ["refine", "web"]
incorrect = ["discard", "web"]

[refinement]
cutoff = 0.30
order = "document"
budget = 2048
top = 5

[web]
words = 3
refine = true

[[presets]]
name = "popqa"
lower = 0.005
upper = 0.795
cutoff = 0.25
note = "published for PopQA"
"""
"""Like the file of the policy `paper`, with thresholds that no training moves."""


def paper_with(old: str, new: str) -> str:
    """`PAPER` with one thing in it changed."""
    assert old in PAPER
    return PAPER.replace(old, new, 1)


def use_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Policies now come from `folder`, which holds `paper` to begin with."""
    folder.mkdir(exist_ok=True)
    (folder / "paper.toml").write_text(PAPER, "utf-8")
    monkeypatch.setattr(policies, "FOLDER", folder)
    return folder
