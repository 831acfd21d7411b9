"""Steps at which writing to a PostgreSQL can die: just before each statement that changes something, and each commit.

As a program, `python -m tests.retrieval.backends.postgres_dying URL STEP TOPIC...`, it waits for a line, indexes a file
about each topic, and really kills itself there; STEP -1: nowhere.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import psycopg

from crag_core.retrieval.backends.postgres.backend import PostgresBackend
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.dying import Killed
from tests.retrieval.fakes import WordEmbedder, write_prose

_READING = ("SELECT", "WITH BEST")


def raise_killed() -> None:
    raise Killed


def die_in_earnest() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def dying_at(step: int, die: Callable[[], None] = raise_killed) -> Iterator[list[str]]:
    """`die` is called before number `step`, from 0; what was done, by its first words."""
    done: list[str] = []
    whole = psycopg.Cursor.execute

    def counted(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        text = query if isinstance(query, str) else query.as_string(None)
        words = " ".join(text.split()).upper()
        if not words.startswith(_READING):
            if len(done) == step:
                die()
            done.append(words[:40])
        return whole(self, query, *arguments, **options)

    with mock.patch.object(psycopg.Cursor, "execute", counted):
        yield done


def main(url: str, step: str, *topics: str) -> None:
    store = PassageStore(PostgresBackend(url), WordEmbedder())
    print("ready", flush=True)
    sys.stdin.readline()
    with dying_at(int(step), die_in_earnest):
        for one in store.ingest([(f"{topic}.txt", write_prose(topic)) for topic in topics]):
            print(one.outcome, one.name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
