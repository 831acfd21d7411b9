"""Versions of the index: the one that is searched, and the one that re-indexing builds beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crag_core.base.documents import INDEX_FORMAT, Document, IndexVersion, Recipe, Stage
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends.backend import Backend, now
from crag_core.retrieval.backends.worker_lease import is_alive

# Whoever asked a question before the replacement may still be searching in the old version.
LEFT_FOR = timedelta(minutes=10)


class IndexVersions:
    """All methods but `current` and `building` are called inside the backend's lock."""

    def __init__(self, backend: Backend, recipe: Recipe) -> None:
        """`recipe` is that of an index which holds nothing yet."""
        self._backend = backend
        self._list = backend.index_versions
        self._recipe = recipe

    def current(self) -> IndexVersion:
        """The one that is searched; raises `StoreUnavailable` for an index that a later program made."""
        rows = self._rows()
        return next((row for row in rows if row.stage == Stage.CURRENT), None) or self._first()

    def building(self) -> IndexVersion | None:
        return next((row for row in self._rows() if row.stage == Stage.BUILDING), None)

    def start_empty(self) -> None:
        """For an index that holds nothing: from now on it follows the recipe of the settings."""
        current = self.current()
        if current.recipe == self._recipe:
            self._list.put([current])
        else:
            left = replace(current, stage=Stage.LEFT, changed_at=now())
            self._list.put([left, self._new(self._recipe, Stage.CURRENT)])

    def begin(self, recipe: Recipe, owner: str) -> IndexVersion:
        """A version to be built by `owner`; one with this recipe that a killed process left is continued.

        Raises `StoreUnavailable` while a living process builds one.
        """
        for row in [row for row in self._rows() if row.stage == Stage.BUILDING]:
            if row.owner != owner and is_alive(row.owner, row.time):
                raise StoreUnavailable(
                    "Another process is re-indexing the documents.", hint="Wait for it to finish, or stop it there."
                )
            if row.recipe == recipe:
                continued = replace(row, owner=owner, changed_at=now())
                self._list.put([continued])
                return continued
            self._drop(row)
        new = replace(self._new(recipe, Stage.BUILDING), owner=owner)
        self._list.put([self.current(), new])
        return new

    def renew(self, version: IndexVersion) -> None:
        """Say that its owner is alive. Raises `StoreUnavailable` unless that owner is still building it."""
        rows = {row.id: row for row in self._rows()}
        known = rows.get(version.id)
        if known is None or (known.stage, known.owner) != (Stage.BUILDING, version.owner):
            raise StoreUnavailable(
                "Re-indexing was stopped, or another process took it over.", hint="Start it once more."
            )
        self._list.put([replace(known, changed_at=now())])

    def bring_up_to_date(self) -> None:
        """Before something is written to the current one that a program before would misread."""
        current = self.current()
        if current.format < INDEX_FORMAT:
            self._list.put([replace(current, format=INDEX_FORMAT)])

    def record_search(self, version: IndexVersion) -> None:
        """Record effort and recall of a version, unless it is gone."""
        known = next((row for row in [*self._rows(), self.current()] if row.id == version.id), None)
        if known is not None:
            self._list.put([replace(known, effort=version.effort, recall=version.recall, measured=version.measured)])

    def make_current(self, version: IndexVersion) -> None:
        """From now on it is searched; the caller sees to it that it is complete."""
        built = replace(version, stage=Stage.CURRENT, owner="", changed_at=now())
        self._list.put([built, replace(self.current(), stage=Stage.LEAVING, changed_at=now())])

    def abandon(self, version: IndexVersion) -> None:
        row = self.building()
        if row is not None and (row.id, row.owner) == (version.id, version.owner):
            self._drop(row)

    def recount(self, whole: Sequence[Document]) -> list[Document]:
        """While a replacement is under way: the `whole` documents whose number of passages is another now."""
        if all(row.stage != Stage.LEAVING for row in self._rows()):
            return []
        counts = {row.id: row.passages for row in self._backend.passages(self.current()).documents()}
        return [
            replace(row, passages=counts[row.id]) for row in whole if counts.get(row.id, row.passages) != row.passages
        ]

    def finish_replacement(self) -> None:
        """After the recount; drops what nobody can be searching any more."""
        rows = self._rows()
        if leaving := [row for row in rows if row.stage == Stage.LEAVING]:
            self._list.put([replace(row, stage=Stage.LEFT) for row in leaving])
        for row in rows:
            if row.stage == Stage.LEFT and datetime.now(UTC) - row.time > LEFT_FOR:
                self._drop(row)

    def _rows(self) -> list[IndexVersion]:
        rows = self._list.rows()
        latest = max((row.format for row in rows), default=0)
        if latest > INDEX_FORMAT:
            raise StoreUnavailable(
                f"The index in {self._backend.place} was made by a later version of this program: it has format "
                f"{latest}, expected at most {INDEX_FORMAT}.",
                hint="Start that version, or set CRAG_HOME or CRAG_STORE to another place.",
            )
        return rows

    def _drop(self, row: IndexVersion) -> None:
        self._backend.passages(row).drop()
        self._list.drop([row.id])

    def _new(self, recipe: Recipe, stage: Stage) -> IndexVersion:
        last = max((int(row.id) for row in [*self._rows(), self._first()]), default=0)
        return IndexVersion(
            str(last + 1), recipe.embedding, recipe.tokens, recipe.overlap, stage, changed_at=now(), format=INDEX_FORMAT
        )

    def _first(self) -> IndexVersion:
        """Of an index without a list of versions: one that an early release made, or an empty one."""
        first = IndexVersion(embedding=self._recipe.embedding, changed_at=now(), format=INDEX_FORMAT)
        built_with = self._backend.passages(first).built_with()
        if built_with is None:
            return replace(first, tokens=self._recipe.tokens, overlap=self._recipe.overlap)
        return replace(first, embedding=built_with)
