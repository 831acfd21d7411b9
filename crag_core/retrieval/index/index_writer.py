"""Writes documents, passages and files in an order that leaves each document whole or absent after a kill."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from crag_core.base.documents import Document, IndexVersion, Recipe, State
from crag_core.base.errors import StoreUnavailable, WriteLost
from crag_core.retrieval.backends.backend import Backend, Passages, now
from crag_core.retrieval.backends.worker_lease import is_alive
from crag_core.retrieval.index.index_versions import IndexVersions

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

_log = logging.getLogger(__name__)


_REBUILDING = "The keyword index was damaged and is being rebuilt."
_REBUILT = "The keyword index was damaged and has been rebuilt from the indexed documents."
_NOT_REBUILT = "The keyword index is damaged and could not be rebuilt."
_FATAL = "the process that writes to the index ended over it, more than once"
_OTHER_FORM = "Save it in another format, or split it into smaller files, and add that."
MOST = 3
"""Where more documents than these are at fault, it is not the documents."""


class IndexVersionChanged(Exception):
    """Passages were made for a version that is not the current one any more."""


@dataclass(frozen=True)
class Written:
    """The outcome for one document.

    `row` is as it stands now, None where the document was removed while it was read; `is_new`: it was not there before;
    `has_replaced`: an earlier content of the same name was removed.
    """

    row: Document | None
    is_new: bool
    has_replaced: bool


class IndexWriter:
    """The order of steps is the promise: a row says what is intended before it is done, and that it is done last."""

    def __init__(self, backend: Backend, recipe: Recipe) -> None:
        """`recipe` is that of an index which holds nothing yet."""
        self.backend = backend
        self.originals = backend.originals
        self.versions = IndexVersions(backend, recipe)
        self._catalogue = backend.documents
        self.remark = ""
        """What people should know of the last tidying; "": all is well."""

    def passages(self, version: IndexVersion | None = None) -> Passages:
        """Of the current version, or of another."""
        return self.backend.passages(version or self.versions.current())

    def is_untouched(self) -> bool:
        """Whether nobody ever wrote to it."""
        return not self._catalogue.is_there() and self.passages().built_with() is None

    def rows(self) -> list[Document]:
        """Of all documents."""
        if not self._catalogue.is_there() and self.passages().built_with() is not None:
            return self._list()
        rows = self._catalogue.rows()
        recounted = {row.id: row for row in self._recounted(rows)}
        return [recounted.get(row.id, row) for row in rows]

    def whole(self) -> dict[str, Document]:
        """The indexed documents by id."""
        return {row.id: row for row in self.rows() if row.is_whole}

    def register(self, documents: Sequence[tuple[Document, bytes]]) -> None:
        """Keep files and note that they wait; what is indexed already stays so."""
        with self._writing() as there:
            if not any(row.is_whole for row in there.values()):
                self.versions.start_empty()
            for row, content in documents:
                self.originals.keep(row.id, content)
            # Somebody else may have put a part of it in: the row goes on to say so.
            self._catalogue.put(
                [_with_part(row, there.get(row.id)) for row, _ in documents if not _is_whole(there, row.id)]
            )

    def note(self, row: Document) -> None:
        """Record the state of a document, unless it was indexed, or removed, meanwhile."""
        with self._writing() as there:
            known = there.get(row.id)
            if known is None or known.is_whole:
                return
            if row.state == State.REFUSED:
                self._drop_parts([known])
                self._catalogue.put([replace(row, changed_at=now())])
                self.originals.drop([row.id])
            elif known.owner == row.owner:  # of two who bring in the same file, the later one is at work on it
                self._catalogue.put([replace(_with_part(row, known), changed_at=now())])

    def write_part(self, row: Document, nodes: Sequence[TextNode], made_for: IndexVersion) -> bool:
        """Make the first passages of a document searched, which are `nodes`, before the others have vectors.

        `row.passages` says how many of them are already. False: not done, since somebody else brings it in or removed
        it, an earlier content of its name is searched until it is whole, or `made_for` is not the current version.
        """
        with self._writing() as there:
            known = there.get(row.id)
            is_own = known is not None and known.is_under_way and _part(known) == _part(row)
            if not is_own or self.versions.current().id != made_for.id:
                return False
            if any(one.is_whole and _is_replaced(one, row) for one in there.values()):
                return False
            self.versions.bring_up_to_date()
            self._catalogue.put([replace(row, state=State.INDEXING, passages=len(nodes), changed_at=now())])
            self.passages().add(nodes[row.passages :], {row.id: row.collection})
            return True

    def write(self, documents: Sequence[tuple[Document, Sequence[TextNode]]], made_for: IndexVersion) -> list[Written]:
        """Put documents in, with one commit for all their passages, and take out what they replace by name.

        Without nodes, a document is expected to be there; of its nodes the first `row.passages` were written by
        `write_part`. A new version goes in before the old one goes out. Raises `IndexVersionChanged` where `made_for`
        is not the current one.
        """
        with self._writing() as there:
            if self.versions.current().id != made_for.id:
                raise IndexVersionChanged
            written: list[Written] = []
            nodes: list[TextNode] = []
            changed: dict[str, Document] = {}
            # A kill right after the passages were added leaves them without a row that says so.
            there |= self._already_added(there, [row.id for row, own in documents if own])
            self._take_over([(there[row.id], row) for row, _ in documents if row.id in there])
            for row, own in documents:
                known = there.get(row.id)
                older = [one for one in there.values() if _is_replaced(one, row)]
                is_new = known is not None and not known.is_whole and bool(own)
                if is_new:
                    version = _next_version(there, row)
                    known = replace(row, state=State.INDEXED, passages=len(own), version=version, owner="")
                    nodes += own[row.passages if _part(there[row.id]) == _part(row) else 0 :]
                if known is None or not known.is_whole:
                    written.append(Written(None, False, False))
                    continue
                change = {**{one.id: replace(one, state=State.LEAVING) for one in older}, known.id: known}
                changed |= change
                there |= change
                written.append(Written(known, is_new, any(one.is_whole for one in older)))
            self.passages().add(nodes, {row.id: row.collection for row, _ in documents})
            self._catalogue.put([*changed.values()])
            self._finish(changed.values())
            return written

    def remove(self, ids: Iterable[str]) -> set[str]:
        """Take documents out, whole ones and others; the ids of those that were there."""
        with self._writing() as there:
            gone = [there[one] for one in dict.fromkeys(ids) if one in there]
            self._remove(gone)
            return {row.id for row in gone}

    def withdraw(self, rows: Iterable[Document]) -> None:
        """Forget documents that did not get in, unless somebody else is bringing them in too."""
        with self._writing() as there:
            own = {row.id: there[row.id] for row in rows if row.id in there and there[row.id].owner == row.owner}
            self._remove(own.values())

    def move(self, ids: Collection[str], collection: str) -> None:
        """Put documents into another collection."""
        with self._writing() as there:
            whole = [there[one] for one in ids if _is_whole(there, one)]
            moved = [replace(row, collection=collection, state=State.MOVING) for row in whole]
            self._catalogue.put(moved)
            self._finish(moved)

    def claim(self, owner: str) -> list[Document]:
        """Finish what a kill interrupted, where that takes no reading; see `recover`.

        The documents that are left become those of `owner`, who is to index them.
        """
        with self._recovering() as lost:
            claimed = [replace(row, owner=owner, changed_at=now()) for row in lost]
            self._catalogue.put(claimed)
            return claimed

    def recover(self) -> list[Document]:
        """Finish what a kill interrupted, where that takes no reading: removals, parts of documents, which go, and rows
        of passages that were added. The documents that are left have yet to be read.
        """
        if not _find_lost(self.rows()):
            return []
        with self._recovering() as lost:
            return lost

    def discard(self) -> list[Document]:
        """Finish the same, and forget the documents that are left, with their files; these."""
        with self._recovering() as lost:
            self._remove(lost)
            return lost

    @contextmanager
    def _recovering(self) -> Iterator[list[Document]]:
        with self._writing() as there:
            lost = _find_lost(there.values())
            added = self._already_added(there, [row.id for row in lost])
            self._drop_parts(lost)
            parts_gone = [replace(row, passages=0) for row in lost if row.is_partial]
            self._catalogue.put([*added.values(), *parts_gone])
            self._finish(_older_versions([*there.values(), *added.values()]))
            yield [replace(row, passages=0) for row in lost if row.id not in added]

    def begin(self, recipe: Recipe, owner: str) -> IndexVersion:
        """A version of passages to be built beside the current one; see `IndexVersions.begin`."""
        with self._writing():
            return self.versions.begin(recipe, owner)

    def add_to(self, building: IndexVersion, documents: Sequence[tuple[Document, Sequence[TextNode]]]) -> None:
        """Passages for a version that is being built, with one commit."""
        with self._writing():
            self.versions.renew(building)
            nodes = [node for _, own in documents for node in own]
            self.passages(building).add(nodes, {row.id: row.collection for row, _ in documents})

    def make_current(self, built: IndexVersion) -> list[Document]:
        """From now on search in a version that was built, unless it lacks documents: these, to be added first.

        Documents that were removed or moved meanwhile are removed or moved in it too.
        """
        with self._writing() as there:
            self.versions.renew(built)
            whole = {row.id: row for row in there.values() if row.is_whole}
            passages = self.passages(built)
            made = {row.id: row for row in passages.documents()}
            if missing := [row for row in whole.values() if row.id not in made]:
                return missing
            passages.delete(made.keys() - whole.keys())
            moved = [row for row in whole.values() if row.collection != made[row.id].collection]
            for collection in {row.collection for row in moved}:
                passages.move([row.id for row in moved if row.collection == collection], collection)
            self.versions.make_current(built)
            self._finish_replacement()
            return []

    def record_search(self, version: IndexVersion) -> None:
        """Record how a version is searched, unless it is gone."""
        with self._writing():
            self.versions.record_search(version)

    def abandon(self, building: IndexVersion) -> None:
        """Drop what was built of a version; the current one stays as it is."""
        with self._writing():
            self.versions.abandon(building)

    def set_aside(self, row: Document) -> Document:
        """Refuse a document that the index cannot hold; the row as it stands then."""
        with self._writing() as there:
            refused = self._set_aside([row])[0]
            if row.id not in there:  # somebody removed it meanwhile
                self._catalogue.drop([row.id])
            return refused

    def try_tidy(self) -> list[Document]:
        """Bring the indexes up to date; where that fails, rebuild the keyword index.

        The documents that had to be refused for it. Until it is up to date, searching is only slower.
        """
        try:
            self._tidy()
            self.remark = ""
        except StoreUnavailable as fault:
            _log.warning("the index could not be tidied: %s", fault)
            return self._try_rebuild_keywords(isinstance(fault, WriteLost))
        return []

    def _tidy(self) -> None:
        with self.backend.lock():
            self.passages().tidy()
            self._catalogue.tidy()
            self.backend.index_versions.tidy()
            self.originals.tidy({row.id for row in self._catalogue.rows()})

    def _try_rebuild_keywords(self, is_urgent: bool) -> list[Document]:
        """Not urgent: it may be the disk or the network, which the next read or write reports."""
        self.remark = _REBUILDING if is_urgent else self.remark
        try:
            is_done, refused = self._rebuild_keywords()
        except StoreUnavailable as fault:
            _log.warning("the keyword index could not be rebuilt: %s", fault)
            self.remark = f"{_NOT_REBUILT} {fault}" if is_urgent else self.remark
            return []
        named = ", ".join(row.name for row in refused)
        text = f"{_REBUILT} Set aside, since it cannot be made with them: {named}." if refused else _REBUILT
        self.remark = text if is_done else ""
        return refused

    def _rebuild_keywords(self) -> tuple[bool, list[Document]]:
        """Whether there was anything to rebuild, and the documents that had to be refused for it."""
        with self._writing() as there:
            passages = self.passages()
            try:
                return passages.rebuild_keywords(), []
            except WriteLost as lost:
                culprits = find_culprits(passages.rehearse, [row.id for row in there.values() if row.is_whole], lost)
            refused = self._set_aside(there[one] for one in culprits)
            return passages.rebuild_keywords(), refused

    def _set_aside(self, rows: Iterable[Document]) -> list[Document]:
        leaving = [
            replace(row, state=State.FAILING, message=f"{row.name}: cannot be indexed: {_FATAL}.", hint=_OTHER_FORM)
            for row in rows
        ]
        self._catalogue.put(leaving)
        return self._finish(leaving)

    @contextmanager
    def _writing(self) -> Iterator[dict[str, Document]]:
        """Alone with the index; all rows by id. An index of an early release gets its catalogue now."""
        with self.backend.lock():
            if not self._catalogue.is_there():
                self._catalogue.put(self._list())
            self._finish_replacement()
            self._finish(self._catalogue.rows())
            yield {row.id: row for row in self._catalogue.rows()}

    def _finish_replacement(self) -> None:
        """Of one index version by another."""
        self._catalogue.put(self._recounted(self._catalogue.rows()))
        self.versions.finish_replacement()

    def _recounted(self, rows: Iterable[Document]) -> list[Document]:
        """The whole documents whose number of passages is another since a replacement, with that number."""
        return self.versions.recount([row for row in rows if row.is_whole])

    def _finish(self, rows: Iterable[Document]) -> list[Document]:
        """Carry out what the rows intend; those that are refused by it, as they stand then."""
        rows = [*rows]
        moving = [row for row in rows if row.state == State.MOVING]
        for collection in {row.collection for row in moving}:
            self.passages().move([row.id for row in moving if row.collection == collection], collection)
        if moving:
            self._catalogue.put([replace(row, state=State.INDEXED) for row in moving])
        leaving = [row.id for row in rows if row.state == State.LEAVING]
        failing = [row for row in rows if row.state == State.FAILING]
        refused = [replace(row, state=State.REFUSED, passages=0, owner="") for row in failing]
        if gone := [*leaving, *(row.id for row in failing)]:
            self.passages().delete(gone)
            self.originals.drop(gone)
            self._catalogue.drop(leaving)
            self._catalogue.put(refused)
        return refused

    def _already_added(self, there: Mapping[str, Document], ids: Collection[str]) -> dict[str, Document]:
        """Those of some documents whose passages are all in the index, as whole, whatever their rows say."""
        added = {}
        for row in self._list([one for one in ids if one not in there or not there[one].is_partial]):
            known = there.get(row.id, row)
            added[row.id] = known if known.is_whole else replace(row, version=_next_version(there, row))
        return added

    def _remove(self, rows: Iterable[Document]) -> None:
        leaving = [replace(row, state=State.LEAVING) for row in rows]
        self._catalogue.put(leaving)
        self._finish(leaving)

    def _take_over(self, rows: Iterable[tuple[Document, Document]]) -> None:
        """Of pairs (as it is, ours) remove the parts that another process has begun, or that were made for another
        version; the other one adds nothing more to them, even if this one is killed here."""
        parts = [(known, own) for known, own in rows if known.is_partial and _part(known) != _part(own)]
        self._catalogue.put([replace(known, owner=own.owner) for known, own in parts])
        self._drop_parts(known for known, _ in parts)

    def _drop_parts(self, rows: Iterable[Document]) -> None:
        """Of documents that are under way; their rows have to say so afterwards."""
        self.passages().delete([row.id for row in rows if row.is_partial])

    def _list(self, ids: Collection[str] | None = None) -> list[Document]:
        """Rows of documents as their passages know them."""
        if ids is not None and not ids:
            return []
        rows = self.passages().documents(ids)
        sizes = self.originals.sizes([row.id for row in rows])
        return [replace(row, size=sizes.get(row.id, 0)) for row in rows]


def _find_lost(rows: Iterable[Document]) -> list[Document]:
    """Those that processes had begun which are gone."""
    begun = [row for row in rows if row.is_under_way]
    last_sign: dict[str, datetime] = {}
    for row in begun:
        last_sign[row.owner] = max(row.time, last_sign.get(row.owner, row.time))
    gone = {owner for owner, seen_at in last_sign.items() if not is_alive(owner, seen_at)}
    return [row for row in begun if row.owner in gone]


def _is_whole(there: Mapping[str, Document], document_id: str) -> bool:
    return document_id in there and there[document_id].is_whole


def _part(row: Document) -> tuple[str, int]:
    """Which part of a document is searched already: whose, and how many passages. All that are searched none of are
    alike."""
    return (row.owner, row.passages) if row.passages else ("", 0)


def _with_part(row: Document, known: Document | None) -> Document:
    """The row of a document that is not whole yet, with what is known of its part."""
    if known is None or not known.is_partial:
        return row
    return replace(row, passages=known.passages, pages=known.pages)


def _next_version(there: Mapping[str, Document], row: Document) -> int:
    return max((one.version for one in there.values() if one.is_whole and _is_replaced(one, row)), default=0) + 1


def _is_replaced(one: Document, new: Document) -> bool:
    """Whether `new` takes the place of `one`: an earlier content of the same name, or a refusal of it."""
    is_other = one.id != new.id and (one.name, one.collection) == (new.name, new.collection)
    return is_other and (one.is_whole or one.state == State.REFUSED)


def _older_versions(rows: Iterable[Document]) -> list[Document]:
    """All but the newest of the whole documents that share a name, as leaving."""
    newest: dict[tuple[str, str], Document] = {}
    older: list[Document] = []
    # By number first: a clock may have been put back between two versions.
    for row in sorted((row for row in rows if row.is_whole), key=lambda row: (row.version, row.changed_at)):
        place = (row.collection, row.name)
        if place in newest:
            older.append(replace(newest[place], state=State.LEAVING))
        newest[place] = row
    return older


def find_culprits(rehearse: Callable[[Collection[str]], None], ids: Sequence[str], lost: WriteLost) -> list[str]:
    """The ids for which `rehearse` raises `WriteLost` each time when given them alone, while it works for others.

    Raises `StoreUnavailable` where there are none, or many. `lost` is what all of them together raised.
    """
    culprits: list[str] = []
    has_worked = len(ids) == 1
    waiting = [ids]
    while waiting and len(culprits) <= MOST:
        part = waiting.pop()
        if not part or not _is_lost(rehearse, part):
            has_worked = has_worked or bool(part)
        elif len(part) > 1:
            waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
        elif _is_lost(rehearse, part):
            culprits += part
    if not has_worked or not 1 <= len(culprits) <= MOST:
        raise StoreUnavailable(
            f"{lost.message} No single document is at fault.",
            hint="Re-index all documents on the Documents page, or with the command reindex.",
        ) from lost
    return culprits


def _is_lost(rehearse: Callable[[Collection[str]], None], ids: Sequence[str]) -> bool:
    try:
        rehearse(ids)
    except WriteLost:
        return True
    return False
