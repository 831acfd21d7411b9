"""Searches the passages of one index version: by vectors that are held in memory, and by words."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from crag_core.base.types.passages import Passage
from crag_core.retrieval.chunking.join import Piece
from crag_core.retrieval.index.index_file import generation
from crag_core.retrieval.index.keywords import query, words_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

_MOST_ROWS = 10_000
"""So many passages may be looked at for the words of a question: the rarest go first, and those that stand nearly
everywhere in a large index, which cost most of the time and say next to nothing, are left out."""
_MOST_REMEMBERED = 10_000
_LEAST = 0.4
"""Of the best score by words: what has less shares common words only, and would crowd out better finds in the fusion.
Of 0 to 0.6, the largest by which words alone find as much as without (hit@5 of route_dev, squad2_dev and xquad_dev)."""


@dataclass(frozen=True)
class Hit:
    """A passage with its stored vector and the search engine's own score (cosine, or one for words)."""

    passage: Passage
    vector: np.ndarray
    score: float


@dataclass(frozen=True)
class _Matrix:
    """Vectors of length 1 with the numbers of their passages, in ascending order, and of their documents."""

    numbers: np.ndarray
    documents: np.ndarray
    vectors: np.ndarray
    generation: int


class Searcher:
    """Of one index version. `database` is in a transaction, so that what is found is of one state; thread-safe.

    The vectors take 4 bytes a number of memory: 154 MB for 100,000 passages of 384. They are read at the first search,
    and later only what another thread or process has added.
    """

    def __init__(self, version: int) -> None:
        self._table = f"passages_{version}"
        self._words = f"words_{version}"
        self._matrix: _Matrix | None = None
        self._lock = Lock()
        self._counts: tuple[int, dict[str, int]] = (-1, {})

    def nearest(self, database: sqlite3.Connection, vector: ArrayLike, limit: int, collection: str) -> list[Hit]:
        import numpy as np

        matrix = self._refreshed(database)
        numbers, vectors = matrix.numbers, matrix.vectors
        asked = np.asarray(vector, dtype=np.float32)
        if not len(numbers) or asked.shape != vectors.shape[1:]:
            return []
        scores = vectors @ (asked / (np.linalg.norm(asked) or 1.0))
        if collection:
            rows = database.execute("SELECT number FROM documents WHERE collection = ?", (collection,))
            inside = np.isin(matrix.documents, np.fromiter((row[0] for row in rows), dtype=np.int64))
            numbers, scores = numbers[inside], scores[inside]
        if limit < len(scores):
            best = np.argpartition(-scores, limit)[:limit]
            numbers, scores = numbers[best], scores[best]
        found = dict(zip(numbers.tolist(), scores.tolist(), strict=True))
        return self._hits(database, sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:limit])

    def by_words(self, database: sqlite3.Connection, question: str, limit: int, collection: str) -> list[Hit]:
        """By BM25, best first; without those that are far from the best."""
        words = self._telling(database, words_of(question))
        if not words or limit < 1:
            return []
        inside = ""
        if collection:
            inside = (
                f"AND +rowid IN (SELECT p.number FROM documents d JOIN {self._table} p ON p.document = d.number"
                " WHERE d.collection = :collection)"
            )
        rows = database.execute(
            f"SELECT rowid, rank FROM {self._words} WHERE text MATCH :words {inside} ORDER BY rank LIMIT :limit",
            {"words": query(words), "collection": collection, "limit": limit},
        )
        scored = sorted(((row[0], -row[1]) for row in rows), key=lambda pair: (-pair[1], pair[0]))
        return self._hits(database, [one for one in scored if one[1] >= _LEAST * scored[0][1]])

    def at(self, database: sqlite3.Connection, places: Sequence[tuple[str, int]]) -> list[Hit]:
        """Passages by document and ordinal, in this order; those that are not there are left out."""
        query = f"SELECT p.number FROM {self._table} p JOIN documents d ON d.number = p.document WHERE d.id = ? AND "
        rows = [database.execute(f"{query} p.ordinal = ?", place).fetchone() for place in places]
        return self._hits(database, [(row[0], -float(at)) for at, row in enumerate(rows) if row is not None])

    def _telling(self, database: sqlite3.Connection, words: list[str]) -> list[str]:
        """The rarest words of a question, at least one, as many as `_MOST_ROWS` allow."""
        now = generation(database)
        if self._counts[0] != now or len(self._counts[1]) > _MOST_REMEMBERED:
            self._counts = (now, {})
        counts, told, rows = self._counts[1], list[str](), 0
        for word in [word for word in words if word not in counts]:
            some = f"SELECT rowid FROM {self._words} WHERE text MATCH ? LIMIT ?"
            counts[word] = database.execute(f"SELECT count(*) FROM ({some})", (query([word]), _MOST_ROWS)).fetchone()[0]
        for word in sorted(words, key=counts.__getitem__):
            rows += counts[word]
            if rows <= _MOST_ROWS or not told:
                told.append(word)
        return told

    def _hits(self, database: sqlite3.Connection, scored: list[tuple[int, float]]) -> list[Hit]:
        import numpy as np

        found = {}
        for number, _ in scored:
            row = database.execute(f"{_PASSAGE} WHERE p.number = ?".format(self._table), (number,)).fetchone()
            if row is not None:
                found[number] = to_passage(row), np.frombuffer(row[-1], dtype=np.float32)
        return [Hit(*found[number], score) for number, score in scored if number in found]

    def _refreshed(self, database: sqlite3.Connection) -> _Matrix:
        with self._lock:
            now = generation(database)
            if self._matrix is None or self._matrix.generation < now:
                self._matrix = self._read(database, self._matrix, now)
            return self._matrix

    def _read(self, database: sqlite3.Connection, known: _Matrix | None, now: int) -> _Matrix:
        """What is there now: the vectors that are known already are taken from `known`."""
        import numpy as np

        # All of it stands in the index of the table, which is small; vectors are read where they are new.
        rows = database.execute(f"SELECT number, document FROM {self._table} INDEXED BY {self._table}_of").fetchall()
        there = np.array(rows, dtype=np.int64).reshape(-1, 2)
        there = there[np.argsort(there[:, 0])]
        numbers, documents = there[:, 0].copy(), there[:, 1].copy()
        old, after = np.empty((0, 0), np.float32), 0
        if known is not None and len(known.numbers):
            is_kept = np.isin(known.numbers, numbers, assume_unique=True)
            old, after = known.vectors if is_kept.all() else known.vectors[is_kept], int(known.numbers[-1])
        if len(old) == len(numbers):
            return _Matrix(numbers, documents, old, now)
        vectors, at = np.empty((0, 0), np.float32), len(old)
        fresh = database.execute(f"SELECT vector FROM {self._table} WHERE number > ? ORDER BY number", (after,))
        while some := fresh.fetchmany(4096):
            read = np.frombuffer(b"".join(row[0] for row in some), dtype=np.float32).reshape(len(some), -1)
            if not len(vectors):
                vectors = np.empty((len(numbers), read.shape[1]), dtype=np.float32)
                vectors[: len(old)] = old.reshape(len(old), read.shape[1])
            sizes = np.linalg.norm(read, axis=1, keepdims=True)
            vectors[at : at + len(some)] = read / np.where(sizes, sizes, 1)
            at += len(some)
        return _Matrix(numbers, documents, vectors, now)


_PASSAGE = (
    "SELECT d.id, d.name, p.ordinal, p.page, p.section, p.text, p.vector FROM {0} p"
    " JOIN documents d ON d.number = p.document"
)


def passages_of(database: sqlite3.Connection, version: int, document_id: str) -> list[Passage]:
    rows = database.execute(
        f"{_PASSAGE} WHERE d.id = ? ORDER BY p.ordinal".format(f"passages_{version}"), (document_id,)
    )
    return [to_passage(row) for row in rows]


def pieces_of(database: sqlite3.Connection, version: int, document_id: str) -> list[Piece]:
    found = database.execute(
        f"SELECT page, start, text FROM passages_{version}"
        " WHERE document = (SELECT number FROM documents WHERE id = ?) ORDER BY ordinal",
        (document_id,),
    )
    return [Piece(*row) for row in found]


def to_passage(row: tuple[str, str, int, int | None, str, str, bytes]) -> Passage:
    document, name, ordinal, page, section, text, _ = row
    return Passage(
        f"{document}-{ordinal}", text, name, document_id=document, page=page, ordinal=ordinal, section=section
    )
