"""Steps at which indexing can die: just before anything reaches the disk, and before every batch of texts is embedded.

As a program, `python -m tests.retrieval.dying FOLDER STEP`, it really kills itself there.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, write_prose

BEFORE = [("guide.txt", write_prose("ropes")), ("old.txt", write_prose("anchors"))]
FILES = [(f"{topic}.txt", write_prose(topic, 150)) for topic in ("seals", "gulls", "buoys")]


class Killed(BaseException):
    """Leaves the disk as a kill does: nothing here catches it, and nothing here cleans up."""


def index(folder: Path) -> None:
    PassageStore(folder, WordEmbedder()).ingest(FILES)


def replace_one(folder: Path) -> None:
    PassageStore(folder, WordEmbedder()).ingest([("guide.txt", write_prose("winches"))])


def _die_in_earnest() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise() -> None:
    raise Killed


@contextmanager
def dying_at(step: int, die: Callable[[], None] = _raise) -> Iterator[None]:
    """Everything that is written inside counts; `die` is called before number `step`, from 0."""
    from lancedb.db import LanceDBConnection
    from lancedb.merge import LanceMergeInsertBuilder
    from lancedb.table import LanceTable

    done = 0

    def counting(whole: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            done += 1
            if done > step:
                die()
            return whole(*arguments, **options)

        return counted

    written = [(LanceTable, name) for name in ("add", "delete", "create_index", "optimize", "update", "add_columns")]
    places = [*written, (LanceDBConnection, "create_table"), (LanceMergeInsertBuilder, "execute")]
    places += [(os, "replace"), (os, "fsync"), (Path, "unlink"), (WordEmbedder, "embed_texts")]
    patches = [mock.patch.object(owner, name, counting(getattr(owner, name))) for owner, name in places]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


if __name__ == "__main__":
    with dying_at(int(sys.argv[2]), _die_in_earnest):
        index(Path(sys.argv[1]))
