"""The indexed files as objects of a store, each named by its document's id and put whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from crag_core.retrieval.backends.backend import original_missing
from crag_core.retrieval.backends.lance.tables import LanceTables
from crag_core.retrieval.hits import DOCUMENT_ID, name_content

if TYPE_CHECKING:
    from obstore.store import S3Store

_FOLDER = "originals"
# Up to so many sizes are asked for one by one; more are listed, a thousand with one request.
_ASKED_SINGLY = 20


class ObjectOriginals:
    """`Originals`; `tables` explains the faults."""

    def __init__(self, open_store: Callable[[], S3Store], tables: LanceTables) -> None:
        self._open = open_store
        self._tables = tables

    def keep(self, document_id: str, content: bytes) -> None:
        with self._tables.explain():
            if self._size(document_id) != len(content):
                self._open().put(_path(document_id), content)

    def read(self, document_id: str) -> bytes:
        with self._tables.explain():
            try:
                content = bytes(self._open().get(_path(document_id)).bytes())
            except FileNotFoundError:
                raise original_missing(is_damaged=False) from None
        if name_content(content) != document_id:
            raise original_missing(is_damaged=True)
        return content

    def sizes(self, document_ids: Collection[str]) -> dict[str, int]:
        with self._tables.explain():
            if len(document_ids) <= _ASKED_SINGLY:
                found = {one: self._size(one) for one in document_ids}
                return {one: size for one, size in found.items() if size is not None}
            there = self._list()
            return {one: there[one] for one in document_ids if one in there}

    def drop(self, document_ids: Iterable[str]) -> None:
        with self._tables.explain():
            if paths := [_path(one) for one in document_ids]:
                self._open().delete(paths)

    def tidy(self, known: Collection[str]) -> None:
        self.drop([one for one in self._list() if one not in known])

    def _size(self, document_id: str) -> int | None:
        try:
            return self._open().head(_path(document_id))["size"]
        except FileNotFoundError:
            return None

    def _list(self) -> dict[str, int]:
        with self._tables.explain():
            found = [one for batch in self._open().list(prefix=_FOLDER) for one in batch]
            sizes = {one["path"].rpartition("/")[2]: one["size"] for one in found}
            return {name: size for name, size in sizes.items() if DOCUMENT_ID.fullmatch(name)}


def _path(document_id: str) -> str:
    if not DOCUMENT_ID.fullmatch(document_id):
        raise ValueError(f"expected 32 hexadecimal digits, found {document_id!r}")
    return f"{_FOLDER}/{document_id}"
