"""Writes to an index: each method is one transaction, so that a document is whole or absent whatever happens."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, fields, replace
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import NamedTuple

from crag_core.base.documents import Document, IndexVersion, Recipe, Stage, State
from crag_core.base.errors import StoreUnavailable
from crag_core.base.types.passages import Passage
from crag_core.retrieval.chunking.join import Piece
from crag_core.retrieval.chunking.split import Chunk
from crag_core.retrieval.index.index_file import IndexFile, drop_passages, make_passages, versions_in
from crag_core.retrieval.index.keywords import spaced
from crag_core.retrieval.index.search import passages_of, pieces_of
from crag_core.retrieval.index.workers import is_alive

Embedded = Sequence[tuple[Chunk, "array[float]"]]
"""Chunks of a document in reading order, with their vectors."""
EARLIER = "earlier"
"""The owner of documents that were taken over from an index of an earlier release, and wait to be read."""
_COLUMNS = ", ".join(one.name for one in fields(Document))
_VALUES = ", ".join("?" for _ in fields(Document))
_UPDATES = ", ".join(f"{one.name} = excluded.{one.name}" for one in fields(Document) if one.name != "id")
_NUMBER = "(SELECT number FROM documents WHERE id = ?)"


class IndexVersionChanged(Exception):
    pass


class Written(NamedTuple):
    """The outcome for one document.

    `row` is as it stands now, None where the document was removed while it was read; `is_new`: it was not there before;
    `has_replaced`: an earlier content of the same name was removed.
    """

    row: Document | None
    is_new: bool = False
    has_replaced: bool = False


def name_content(content: bytes) -> str:
    """The id of a document: the beginning of the SHA-256 of its bytes."""
    return hashlib.sha256(content).hexdigest()[:32]


def now() -> str:
    return datetime.now(UTC).isoformat()


class IndexWriter:
    def __init__(self, file: IndexFile, recipe: Recipe) -> None:
        """`recipe` is that of an index which holds nothing yet."""
        self.file = file
        self._recipe = recipe

    def current(self, database: Connection) -> IndexVersion:
        """The version that is searched; one with id 0 by the settings where there is none yet."""
        recipe = self._recipe
        return version_at(database, Stage.CURRENT) or IndexVersion(0, recipe.embedding, recipe.tokens, recipe.overlap)

    def register(self, documents: Sequence[tuple[Document, bytes]]) -> None:
        """Keep files, and note that they wait; what is indexed already, or by somebody else now, stays so."""
        with self.file.writing() as database:
            self._begin_if_empty(database)
            for row, content in documents:
                known = _row(database, row.id)
                is_theirs = known is not None and known.owner != row.owner and is_alive(self.file.folder, known.owner)
                if known is None or not (known.is_whole or is_theirs):
                    _drop_passages_of(database, [row.id])  # somebody else may have put a part of it in
                    _put(database, row)
                    database.execute(f"REPLACE INTO originals VALUES ({_NUMBER}, ?)", (row.id, content))

    def is_earlier_due(self) -> bool:
        """Whether the documents of an earlier index have yet to be registered."""
        with self.file.reading() as database:
            return not database.execute("SELECT 1 FROM state WHERE name = 'earlier'").fetchone()

    def end_earlier(self) -> None:
        """All of them are registered: one that is removed from now on does not come back."""
        with self.file.writing() as database:
            database.execute("INSERT OR IGNORE INTO state VALUES ('earlier', 1)")

    def begin_document(self, document_id: str) -> None:
        with self.file.writing() as database:
            waiting = (State.INDEXING, document_id, State.WAITING)
            database.execute("UPDATE documents SET state = ? WHERE id = ? AND state = ?", waiting)

    def refuse(self, row: Document) -> None:
        """Record that a document cannot be read, and forget its file, unless it was indexed or removed meanwhile."""
        with self.file.writing() as database:
            known = _row(database, row.id)
            if known is not None and known.is_under_way:
                _drop_passages_of(database, [row.id])
                _drop_original(database, row.id)
                _put(database, replace(row, state=State.REFUSED, owner="", passages=0, changed_at=now()))

    def write_part(self, row: Document, embedded: Embedded, version: IndexVersion) -> Document:
        """Make the first passages of a document searched, which are `embedded`, before the others have vectors.

        `row.passages`, and that of the result, says how many of them are. None more where somebody else brings it in or
        removed it, an earlier content of its name is searched until it is whole, or `version` is not the current one.
        """
        with self.file.writing() as database:
            is_own = _is_part_of(_row(database, row.id), row)
            if not is_own or self.current(database).id != version.id or _replaced_by(database, row):
                return row
            _add(database, version.id, row.id, embedded, row.passages)
            written = replace(row, state=State.INDEXING, passages=len(embedded), changed_at=now())
            _put(database, written)
            return written

    def write(self, row: Document, embedded: Embedded = (), version: IndexVersion | None = None) -> Written:
        """Put a document in, and take out what it replaces by name.

        Without passages the document is expected to be there; of its passages the first `row.passages` were written by
        `write_part`. Raises `IndexVersionChanged` where `version` is not the current one.
        """
        with self.file.writing() as database:
            known = _row(database, row.id)
            if known is None or not (known.is_whole or embedded):
                return Written(None)
            older = _replaced_by(database, row)
            if row.owner == EARLIER and any(one.is_whole for one in older):
                _remove(database, [row.id])  # a newer content was added since
                return Written(None)
            is_new = not known.is_whole
            if is_new:
                if version is None or self.current(database).id != version.id:
                    raise IndexVersionChanged
                start = row.passages if _is_part_of(known, row) else 0
                if not start:
                    _drop_passages_of(database, [row.id])
                _add(database, version.id, row.id, embedded, start)
                next_version = max((one.version + 1 for one in older if one.is_whole), default=row.version)
                known = replace(
                    row, state=State.INDEXED, passages=len(embedded), version=next_version, owner="", changed_at=now()
                )
                _put(database, known)
            _remove(database, [one.id for one in older])
            return Written(known, is_new, any(one.is_whole for one in older))

    def count(self) -> tuple[int, int]:
        """Documents that are indexed, and their passages."""
        with self.file.reading() as database:
            whole = rows_where(database, "state = ?", (State.INDEXED,))
        return len(whole), sum(row.passages for row in whole)

    def content(self, document_id: str, is_waiting: bool = False) -> bytes | None:
        """The file of a document, with `is_waiting` of one that is not indexed yet; None: there is none."""
        with self.file.reading() as database:
            row = _row(database, document_id)
            if row is None or (is_waiting and not row.is_under_way):
                return None
            found = database.execute(f"SELECT content FROM originals WHERE document = {_NUMBER}", (row.id,)).fetchone()
            return bytes(found[0]) if found else None

    def passages(self, document_id: str) -> list[Passage]:
        with self.file.reading() as database:
            version = self.current(database).id
            return passages_of(database, version, document_id) if version else []

    def pieces(self, document_id: str) -> list[Piece]:
        with self.file.reading() as database:
            version = self.current(database).id
            return pieces_of(database, version, document_id) if version else []

    def remove(self, ids: Iterable[str]) -> set[str]:
        """Take documents out, whole ones and others; the ids of those that were there."""
        with self.file.writing() as database:
            there = {one for one in ids if _row(database, one) is not None}
            _remove(database, there)
            return there

    def withdraw(self, owner: str) -> None:
        """Forget the documents of a worker that did not get in; those of an earlier index wait for another time."""
        if owner != EARLIER:
            with self.file.writing() as database:
                _remove(database, [row.id for row in rows_where(database, "owner = ?", [owner])])

    def move(self, ids: Iterable[str], collection: str) -> None:
        with self.file.writing() as database:
            for one in ids:
                database.execute(
                    "UPDATE documents SET collection = ? WHERE id = ? AND state = ?", (collection, one, State.INDEXED)
                )

    def lost(self) -> list[Document]:
        """Documents that killed processes had begun."""
        with self.file.reading() as database:
            return self._find_lost(database)

    def claim(self, owner: str) -> list[Document]:
        """The same, which become those of `owner`, without the parts that were written; for `EARLIER`: those of an
        index of an earlier release."""
        with self.file.writing() as database:
            is_earlier = owner == EARLIER
            found = rows_where(database, "owner = ?", [EARLIER]) if is_earlier else self._find_lost(database)
            _drop_passages_of(database, [row.id for row in found if row.is_partial])
            claimed = [replace(row, owner=owner, state=State.WAITING, passages=0, changed_at=now()) for row in found]
            for row in claimed:
                _put(database, row)
            return claimed

    # --- another version of the passages ---

    def begin(self, recipe: Recipe, owner: str) -> IndexVersion:
        """A version to be built by `owner`. Raises `StoreUnavailable` while a living process builds one."""
        with self.file.writing() as database:
            left = version_at(database, Stage.BUILDING)
            if left is not None:
                if is_alive(self.file.folder, left.owner):
                    hint = "Wait for it to finish, or stop it there."
                    raise StoreUnavailable("Another process is re-indexing the documents.", hint=hint)
                _drop_version(database, left.id)
            return _new_version(database, recipe, Stage.BUILDING, owner)

    def drop_lost_version(self) -> None:
        """What a killed process had built."""
        with self.file.reading() as database:
            left = version_at(database, Stage.BUILDING)
        if left is not None and not is_alive(self.file.folder, left.owner):
            self.abandon(left)

    def missing_in(self, building: IndexVersion) -> list[Document]:
        with self.file.reading() as database:
            return _missing(database, building)

    def add_to(self, building: IndexVersion, row: Document, embedded: Embedded) -> None:
        """Passages of one document for a version that is being built, unless the document is gone."""
        with self.file.writing() as database:
            _check_building(database, building)
            if row.id in {one.id for one in _missing(database, building)}:
                _add(database, building.id, row.id, embedded, 0)

    def make_current(self, building: IndexVersion) -> list[Document]:
        """From now on search in a version that was built, unless it lacks documents: these, to be added first."""
        with self.file.writing() as database:
            _check_building(database, building)
            if missing := _missing(database, building):
                return missing
            old = version_at(database, Stage.CURRENT)
            if old is not None:
                _drop_version(database, old.id)
            database.execute("UPDATE versions SET stage = ?, owner = '' WHERE id = ?", (Stage.CURRENT, building.id))
            counted = f"(SELECT count(*) FROM passages_{building.id} p WHERE p.document = documents.number)"
            database.execute(f"UPDATE documents SET passages = {counted} WHERE state != ?", (State.REFUSED,))
            return []

    def abandon(self, building: IndexVersion) -> None:
        """Drop what was built of a version; the current one stays as it is."""
        with self.file.writing() as database:
            if version_at(database, Stage.BUILDING) == building:
                _drop_version(database, building.id)

    def _begin_if_empty(self, database: Connection) -> None:
        """An index that holds nothing follows the settings from now on."""
        old = version_at(database, Stage.CURRENT)
        is_fixed = database.execute("SELECT 1 FROM documents WHERE passages > 0 LIMIT 1").fetchone() is not None
        if old is None or (old.recipe != self._recipe and not is_fixed):
            if old is not None:
                _drop_version(database, old.id)
            _new_version(database, self._recipe, Stage.CURRENT)

    def _find_lost(self, database: Connection) -> list[Document]:
        begun = rows_where(database, "state IN (?, ?) AND owner != ?", (State.WAITING, State.INDEXING, EARLIER))
        gone = {owner for owner in {row.owner for row in begun} if not is_alive(self.file.folder, owner)}
        return [row for row in begun if row.owner in gone]


# --- in a transaction of the caller's ---


def rows_where(database: Connection, condition: str = "1", values: Sequence[object] = ()) -> list[Document]:
    found = database.execute(f"SELECT {_COLUMNS} FROM documents WHERE {condition}", values)
    return [Document(*row) for row in found]


def version_at(database: Connection, stage: str) -> IndexVersion | None:
    found = database.execute(
        "SELECT id, embedding, tokens, overlap, stage, owner FROM versions WHERE stage = ?", (stage,)
    ).fetchone()
    return IndexVersion(*found) if found else None


def _row(database: Connection, document_id: str) -> Document | None:
    return next(iter(rows_where(database, "id = ?", (document_id,))), None)


def _put(database: Connection, row: Document) -> None:
    database.execute(
        f"INSERT INTO documents ({_COLUMNS}) VALUES ({_VALUES}) ON CONFLICT (id) DO UPDATE SET {_UPDATES}", astuple(row)
    )


def _is_part_of(known: Document | None, row: Document) -> bool:
    """Whether what is there of a document under way was written for `row`."""
    return known is not None and known.is_under_way and (known.owner, known.passages) == (row.owner, row.passages)


def _replaced_by(database: Connection, row: Document) -> list[Document]:
    found = rows_where(database, "name = ? AND collection = ? AND id != ?", (row.name, row.collection, row.id))
    return [one for one in found if one.is_whole or one.state == State.REFUSED]


def _add(database: Connection, version: int, document_id: str, embedded: Embedded, start: int) -> None:
    for ordinal, (chunk, vector) in enumerate(embedded[start:], start):
        added = database.execute(
            f"INSERT INTO passages_{version} (document, ordinal, page, section, start, text, vector)"
            f" VALUES ({_NUMBER}, ?, ?, ?, ?, ?, ?)",
            (document_id, ordinal, chunk.page, chunk.section, chunk.start, chunk.text, vector.tobytes()),
        )
        database.execute(
            f"INSERT INTO words_{version} (rowid, text) VALUES (?, ?)", (added.lastrowid, spaced(chunk.text))
        )


def _drop_passages_of(database: Connection, ids: Collection[str]) -> None:
    for version in versions_in(database):
        for one in ids:
            database.execute(f"DELETE FROM passages_{version} WHERE document = {_NUMBER}", (one,))


def _drop_original(database: Connection, document_id: str) -> None:
    database.execute(f"DELETE FROM originals WHERE document = {_NUMBER}", (document_id,))


def _remove(database: Connection, ids: Collection[str]) -> None:
    _drop_passages_of(database, ids)
    for one in ids:
        _drop_original(database, one)
        database.execute("DELETE FROM documents WHERE id = ?", (one,))


def _new_version(database: Connection, recipe: Recipe, stage: str, owner: str = "") -> IndexVersion:
    made = IndexVersion(0, recipe.embedding, recipe.tokens, recipe.overlap, stage, owner)
    added = database.execute(
        "INSERT INTO versions (embedding, tokens, overlap, stage, owner) VALUES (?, ?, ?, ?, ?)", astuple(made)[1:]
    )
    made = replace(made, id=int(added.lastrowid or 0))
    make_passages(database, made.id)
    return made


def _drop_version(database: Connection, version: int) -> None:
    drop_passages(database, version)
    database.execute("DELETE FROM versions WHERE id = ?", (version,))


def _missing(database: Connection, building: IndexVersion) -> list[Document]:
    made = f"SELECT 1 FROM passages_{building.id} p WHERE p.document = documents.number"
    return rows_where(database, f"state = ? AND passages > 0 AND NOT EXISTS ({made})", (State.INDEXED,))


def _check_building(database: Connection, building: IndexVersion) -> None:
    if version_at(database, Stage.BUILDING) != building:
        raise StoreUnavailable("Re-indexing was stopped, or another process took it over.", hint="Start it once more.")
