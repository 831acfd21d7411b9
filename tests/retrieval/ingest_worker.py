"""Run as a process of its own: `python -m tests.retrieval.ingest_worker FOLDER MOMENT NAME=TOPIC...`.

MOMENT says when it kills itself as `kill -9` would, or "never"; it says "ready", waits for a line, then indexes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crag_core.retrieval.backends.lance.passages import LancePassages
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, write_prose


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(moment: str) -> WordEmbedder:
    if moment == "second batch":
        batches: list[int] = []

        def count(texts: Sequence[str]) -> None:
            batches.append(len(texts))
            if len(batches) == 2:
                die()

        return WordEmbedder(on_batch=count)
    if moment == "after add":
        table: Any = LancePassages
        add = table.add

        def add_and_die(self: Any, nodes: Any, collections: Any) -> None:
            add(self, nodes, collections)
            die()

        table.add = add_and_die
    return WordEmbedder()


def main(folder: str, moment: str, *files: str) -> None:
    store = PassageStore(Path(folder), arm(moment))
    documents = [(name, write_prose(topic)) for name, _, topic in (file.partition("=") for file in files)]
    print("ready", flush=True)
    sys.stdin.readline()
    for one in store.ingest(documents):
        print(one.outcome, one.name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
