"""A process that changes a home until it is killed: `python -m tests.retrieval.store_worker FOLDER SEED`.

It prints a line before each change, and one when it was acknowledged.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

from crag_core.base.concurrency.sqlite_file import NAME
from crag_core.base.documents import Recipe
from crag_core.base.errors import StoreUnavailable
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.store import ExperimentStore
from crag_core.retrieval.index import ingest
from crag_core.retrieval.index.store import PassageStore
from crag_core.storage.cache import TableCache
from crag_core.storage.history import HistoryStore
from tests.retrieval.fakes import WordEmbedder, write_prose
from tests.storage.cache_parts import grade
from tests.storage.history_parts import whole_run

DOCUMENTS = [f"{topic}.txt" for topic in ("seals", "gulls", "buoys", "ropes", "tides")]


def say(*words: object) -> None:
    print(*words, flush=True)


def open_store(folder: Path) -> PassageStore:
    embedder = WordEmbedder()
    embedder.tokenize = str.split  # LlamaIndex's takes seconds to load
    return PassageStore(folder, embedder)


def main(folder: Path, seed: int) -> None:
    draw, ingest.PART = random.Random(seed), 2
    store, history, laboratory = open_store(folder), HistoryStore(folder / NAME), ExperimentStore(folder)
    grades = TableCache(folder / NAME, 3600.0)
    say("ready")
    for number in count():
        mark = f"{seed}-{number}"
        name, recipe = draw.choice(DOCUMENTS), Recipe("words-64", draw.choice((60, 220)), 10)
        there = {row.name: row.id for row in store.documents()}
        match draw.choices(("add", "remove", "rebuild", "run", "grade", "set", "copy"), (6, 2, 1, 4, 4, 4, 2))[0]:
            case "add":
                content = write_prose(f"{name} {draw.random()}", draw.randint(1, 200))
                say("adding", name)
                (done,) = store.ingest([(name, content)])
                say("added", name, done.document_id)
            case "remove" if name in there:
                say("removing", name)
                store.delete_all([there[name]])
                say("removed", name)
            case "rebuild":
                say("rebuilding", recipe.tokens)
                with suppress(StoreUnavailable):  # another worker has one under way
                    store.rebuild(recipe)
                say("rebuilt", recipe.tokens)
            case "run":
                history.save(whole_run(mark))
                say("saved", mark)
            case "grade":
                grades.put_many({mark: grade()})
                if not grades.problem:
                    say("graded", mark)
            case "set":
                laboratory.change_set("own", lambda own: own.having(LabelledQuestion(f"{mark}?", Expected.CORRECT)))  # noqa: B023
                say("labelled", mark)
            case "copy":
                store.copy_to(folder / f"copy-{mark}.db")
                say("copied", mark)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
