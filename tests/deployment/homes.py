"""A home with something of everything, and what it holds.

As a program it starts quickly, without the embedding model: `python -m tests.deployment.homes backup FILE`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from crag_core.app import workbench as build
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.evaluators.policies import find_policy, suit
from crag_core.trace.trace import Trace
from tests.experiments.test_kept_files import PRESET, SET
from tests.storage.history_parts import passage_label
from tests.word_embedder import WordEmbedder

FILES = [
    ("ferry.txt", b"The ferry to Vennick leaves at nine in the morning. It carries forty cars and two hundred people."),
    ("bread.md", b"# Bread\n\nKnead the dough for ten minutes. Let it rise for an hour. Bake it at 220 degrees."),
]
QUESTION = "When does the ferry to Vennick leave?"


@dataclass(frozen=True)
class Held:
    """What people would miss."""

    documents: tuple[Any, ...]
    files: tuple[bytes, ...]
    passages: tuple[Any, ...]
    found: tuple[Any, ...]
    by_words: tuple[Any, ...]
    runs: tuple[Trace | None, ...]
    labels: tuple[Any, ...]
    sets: tuple[Any, ...]
    presets: tuple[Any, ...]
    audit: tuple[str, ...]


def open_home(home: Path, **settings: Any) -> Workbench:
    with patch.object(build, "HuggingFaceEmbedder", WordEmbedder):
        return Workbench(Config(home=home, **settings))


def ask(workbench: Workbench, text: str) -> Trace:
    policy = suit(find_policy("paper", workbench.config), "embedding")
    trace = workbench.engine(Choice(policy, "embedding")).run(text)
    workbench.history.save(trace)
    return trace


def fill(home: Path) -> Workbench:
    workbench = open_home(home)
    workbench.store.ingest(FILES)
    trace = ask(workbench, QUESTION)
    workbench.history.add_label(passage_label(trace, trace.passages[0].id))
    workbench.experiments.keep_set(SET)
    workbench.experiments.save_preset(PRESET)
    (home / "sample-indexed").touch()
    return workbench


def held_in(workbench: Workbench) -> Held:
    store, history, laboratory = workbench.store, workbench.history, workbench.experiments
    documents = store.documents()
    return Held(
        documents,
        tuple(store.read_original(one.id) for one in documents),
        tuple(store.passages_of(one.id) for one in documents),
        tuple((hit.passage, hit.score) for hit in store.search_dense(store.embedder.embed_question(QUESTION), 5)),
        tuple((hit.passage, hit.score) for hit in store.search_keyword("ferry Vennick", 5)),
        tuple(history.load(run.id) for run in history.search()),
        history.all_labels(),
        tuple(laboratory.load_set(name) for name in laboratory.set_names()),
        tuple(laboratory.load_preset(name) for name in laboratory.preset_names()),
        tuple(line for _, line in workbench.audit.lines()) if workbench.audit else (),
    )


if __name__ == "__main__":
    build.HuggingFaceEmbedder = WordEmbedder  # type: ignore[misc,assignment]
    from crag_core.__main__ import main

    sys.exit(main(sys.argv[1:]))
