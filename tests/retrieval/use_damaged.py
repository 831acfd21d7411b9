"""Everything that is done with an index, done with a damaged one: `python -m tests.retrieval.use_damaged FOLDER`.

Prints what each raises; any error that is not the project's own ends it, as an abort does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, embed_words, write_prose


def use(store: PassageStore) -> list[Callable[[], object]]:
    return [
        store.documents,
        store.count,
        store.coverage,
        lambda: store.search_keyword("tides", 5),
        lambda: store.search_dense(embed_words("tides"), 5),
        lambda: [store.passages_of(document.id) for document in store.documents()],
        lambda: store.move([document.id for document in store.documents()], "harbour"),
        lambda: store.ingest([("new.txt", write_prose("seals"))]),
        lambda: store.delete_all([document.id for document in store.documents()]),
    ]


if __name__ == "__main__":
    store = PassageStore(Path(sys.argv[1]), WordEmbedder())
    for step in use(store):
        try:
            step()
        except StoreUnavailable as fault:
            print(fault)
