"""The protocols of a backend: tables of passages, lists of rows, stored files, and one writer at a time.

Every method raises `StoreUnavailable` when the engine underneath fails, with what to do about it. `IndexWriter` keeps
them consistent by the order of its steps; no backend has to commit to two of them at once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from crag_core.base.documents import Document, IndexVersion
from crag_core.base.errors import DocumentMissing, StoreUnavailable
from crag_core.base.types.passages import Passage

if TYPE_CHECKING:
    import numpy as np
    from _typeshed import DataclassInstance
    from llama_index.core.schema import TextNode

DOCUMENT_ID = re.compile(r"[0-9a-f]{32}")
R = TypeVar("R", bound="DataclassInstance")


@dataclass(frozen=True)
class Hit:
    """A passage with its stored vector and the search engine's own score (cosine, or one for words)."""

    passage: Passage
    vector: np.ndarray
    score: float


def name_content(content: bytes) -> str:
    """The id of a document: the beginning of the SHA-256 of its bytes."""
    return hashlib.sha256(content).hexdigest()[:32]


def now() -> str:
    return datetime.now(UTC).isoformat()


class Passages(Protocol):
    """The passages of one index version. Those that write are called inside the backend's lock."""

    def built_with(self) -> str | None:
        """The embedding model that the table was made for; None where nothing was ever written."""
        ...

    def add(self, nodes: Sequence[TextNode], collections: Mapping[str, str]) -> None:
        """Nodes with embeddings, all or none; `collections` has the collection of each document's id.

        Raises `WriteLost` where whoever wrote died over it; then no passages of these documents are left.
        """
        ...

    def delete(self, document_ids: Collection[str]) -> None: ...

    def move(self, document_ids: Collection[str], collection: str) -> None: ...

    def documents(self, ids: Collection[str] | None = None) -> list[Document]:
        """Of all, or of some, documents with passages here: what these record of them, as INDEXED, without size."""
        ...

    def of(self, document_id: str) -> list[Passage]:
        """In reading order."""
        ...

    def search_dense(self, vector: Sequence[float], limit: int, collection: str = "", exact: bool = False) -> list[Hit]:
        """Nearest first by cosine, which is the score.

        Approximately where there is an index for that, by the effort of the version, unless `exact`; passages that
        the index does not hold yet are found too.
        """
        ...

    @property
    def efforts(self) -> Sequence[int]:
        """What `IndexVersion.effort` may be, from the least to the most; what it means is the engine's."""
        ...

    def coverage(self) -> tuple[int, int]:
        """(passages in the table, those of them in the approximate index)."""
        ...

    def is_worn(self) -> bool:
        """Whether the approximate index should be rebuilt, however little the passages have changed."""
        ...

    def index_vectors(self) -> None:
        """Rebuild the approximate index from all passages. Outside the lock: others read and write meanwhile."""
        ...

    def search_keyword(self, text: str, limit: int, collection: str = "") -> list[Hit]:
        """Best first; `text` is words, never a query language."""
        ...

    def sample(self, limit: int, collection: str = "") -> list[Hit]:
        """At most `limit`, evenly taken in the order of the table; score 0."""
        ...

    def tidy(self) -> None:
        """Bring the indexes up to date, and free the space that is not needed any more."""
        ...

    def rebuild_keywords(self) -> bool:
        """Rebuild the keyword index from all passages, whatever its state; False: the engine maintains it itself."""
        ...

    def rehearse(self, document_ids: Collection[str]) -> None:
        """Build a keyword index of the passages of some documents on trial; nothing of it is left."""
        ...

    def drop(self) -> None:
        """All of it; nothing happens where nothing was ever written."""
        ...


class Rows(Protocol[R]):
    """A short list of dataclasses with a field `id`. `put` and `drop` are called inside the backend's lock."""

    def is_there(self) -> bool:
        """Whether `put` was ever called, be it without rows."""
        ...

    def rows(self) -> list[R]:
        """All of them, in no order."""
        ...

    def put(self, rows: Sequence[R]) -> None:
        """Add rows, or replace those of the same ids, all or none."""
        ...

    def drop(self, ids: Iterable[str]) -> None: ...

    def tidy(self) -> None: ...


class Originals(Protocol):
    """The files that were indexed, byte for byte. `keep`, `drop` and `tidy` are called inside the backend's lock."""

    def keep(self, document_id: str, content: bytes) -> None:
        """Whole or not at all; one that is there and sound is left as it is."""
        ...

    def read(self, document_id: str) -> bytes:
        """Raises `DocumentMissing` where it was never stored, or is not the file that was indexed."""
        ...

    def sizes(self, document_ids: Collection[str]) -> dict[str, int]:
        """Bytes of those that are here."""
        ...

    def drop(self, document_ids: Iterable[str]) -> None: ...

    def tidy(self, known: Collection[str]) -> None:
        """Remove what a killed process left: files half written, and those of documents that are not `known`."""
        ...


class Backend(Protocol):
    @property
    def place(self) -> str:
        """For people, without secrets."""
        ...

    @property
    def documents(self) -> Rows[Document]: ...

    @property
    def index_versions(self) -> Rows[IndexVersion]: ...

    @property
    def originals(self) -> Originals: ...

    def passages(self, version: IndexVersion) -> Passages: ...

    def lock(self) -> AbstractContextManager[None]:
        """One writer at a time, over threads, processes and machines; freed when its holder dies."""
        ...


def to_passage(
    id: str, text: str, document_id: str, name: str, page: str, ordinal: int, section: str | None = None
) -> Passage:
    """From the columns that every backend has; `page` is "" in formats without pages."""
    number = int(page) if page else None
    return Passage(id, text, name, document_id=document_id, page=number, ordinal=ordinal, section=section or "")


def check_id(document_id: str) -> str:
    """The same; `AssertionError` for what is no id of a document, and may not name a file or stand in a filter."""
    if not DOCUMENT_ID.fullmatch(document_id):
        raise AssertionError(f"expected 32 hexadecimal digits, found {document_id!r}")
    return document_id


def check_original(document_id: str, content: bytes | None) -> bytes:
    """The file; raises `DocumentMissing` where there is none, or it is not the one that was indexed."""
    if content is not None and name_content(content) == document_id:
        return content
    reason = "is not here: it was indexed before originals were kept" if content is None else "is damaged"
    raise DocumentMissing(
        f"The original of this document {reason}.",
        hint="Add the same file again on the Documents page: that keeps it, and changes nothing else.",
    )


def lock_taken(seconds: float) -> StoreUnavailable:
    return StoreUnavailable(
        f"Another process has been writing to the index for over {seconds:g} seconds.",
        hint="Wait for it to finish, or stop it, and try again.",
    )
