"""A process that changes an index until it is killed: `python -m tests.retrieval.store_worker FOLDER SEED [URL]`.

It prints a line before each change, and one when it was acknowledged. `URL` is of a database for the vectors.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from pathlib import Path

from crag_core.base.documents import Recipe
from crag_core.base.errors import StoreUnavailable
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.retrieval.index import ingest
from crag_core.retrieval.index.store import PassageStore, _read_here
from crag_core.retrieval.index.vector_store import VectorStorePassages
from tests.retrieval.fakes import DIMENSION, WordEmbedder, write_prose

NAMES = [f"{topic}.txt" for topic in ("seals", "gulls", "buoys", "ropes", "tides")]


def say(*words: object) -> None:
    print(*words, flush=True)


def open_store(folder: Path, url: str = "") -> PassageStore:
    embedder = WordEmbedder()
    embedder.tokenize = str.split  # LlamaIndex's takes seconds to load
    if not url:
        return PassageStore(folder, embedder)
    from llama_index.vector_stores.postgres import PGVectorStore

    vectors = PGVectorStore.from_params(
        connection_string=url, async_connection_string=url, table_name="kept", embed_dim=DIMENSION
    )
    recipe, ask = Recipe(embedder.name), lambda work: work(vectors)
    return VectorStorePassages(folder, embedder, _read_here, ask, recipe=recipe, find_embedder=WordEmbedder)


def main(folder: Path, seed: int, url: str = "") -> None:
    draw, ingest.PART = random.Random(seed), 2
    store = open_store(folder, url)
    if url:
        import_llama_index()
    say("ready")
    while True:
        name, recipe = draw.choice(NAMES), Recipe("words-64", draw.choice((60, 220)), 10)
        there = {row.name: row.id for row in store.documents()}
        match draw.choices(("add", "remove", "rebuild"), (6, 2, 1))[0]:
            case "add":
                content = write_prose(f"{name} {draw.random()}", draw.randint(1, 200))
                say("adding", name)
                (done,) = store.ingest([(name, content)])
                say("added", name, done.document_id)
            case "remove" if name in there:
                say("removing", name)
                store.delete_all([there[name]])
                say("removed", name)
            case "rebuild" if not url:
                say("rebuilding", recipe.tokens)
                with suppress(StoreUnavailable):  # another worker has one under way
                    store.rebuild(recipe)
                say("rebuilt", recipe.tokens)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
