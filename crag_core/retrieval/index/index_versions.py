"""Versions of the index: the one that is searched, and the one that re-indexing builds beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crag_core.base.documents import INDEX_FORMAT, Document, IndexVersion, Recipe, Stage
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends.backend import Backend, Passages
from crag_core.retrieval.backends.worker_lease import is_alive
from crag_core.retrieval.hits import now

# Whoever asked a question of the generation before may still be searching in it.
LEFT_FOR = timedelta(minutes=10)


class IndexVersions:
    """All methods but `current` and `passages` are called inside the backend's lock."""

    def __init__(self, backend: Backend, recipe: Recipe) -> None:
        """`recipe` is that of an index which holds nothing yet."""
        self._backend = backend
        self._list = backend.generations
        self._recipe = recipe

    def current(self) -> IndexVersion:
        """The one that is searched; raises `StoreUnavailable` for an index that a later program made."""
        rows = self._rows()
        return next((row for row in rows if row.stage == Stage.CURRENT), None) or self._first()

    def building(self) -> IndexVersion | None:
        return next((row for row in self._rows() if row.stage == Stage.BUILDING), None)

    def passages(self, generation: IndexVersion) -> Passages:
        return self._backend.passages(generation)

    def start_empty(self) -> None:
        """For an index that holds nothing: it is made by the recipe of the settings from now on."""
        now_current = self.current()
        if now_current.recipe == self._recipe:
            self._list.put([now_current])
        else:
            left = replace(now_current, stage=Stage.LEFT, changed_at=now())
            self._list.put([left, self._new(self._recipe, Stage.CURRENT)])

    def begin(self, recipe: Recipe, owner: str) -> IndexVersion:
        """A generation to be built by `owner`: that which a killed process left, where it has the same recipe.

        Raises `StoreUnavailable` while a living process builds one.
        """
        for row in [row for row in self._rows() if row.stage == Stage.BUILDING]:
            if row.owner != owner and is_alive(row.owner, row.time):
                raise StoreUnavailable(
                    "Another process is making the chunks anew.", hint="Wait for it to finish, or stop it there."
                )
            if row.recipe == recipe:
                taken = replace(row, owner=owner, changed_at=now())
                self._list.put([taken])
                return taken
            self._drop(row)
        begun = replace(self._new(recipe, Stage.BUILDING), owner=owner)
        self._list.put([self.current(), begun])
        return begun

    def check(self, generation: IndexVersion) -> None:
        """Raises `StoreUnavailable` unless it is still being built by its owner; says that the owner lives."""
        rows = {row.id: row for row in self._rows()}
        known = rows.get(generation.id)
        if known is None or (known.stage, known.owner) != (Stage.BUILDING, generation.owner):
            raise StoreUnavailable(
                "Making the chunks anew was stopped, or another process took it over.", hint="Start it once more."
            )
        self._list.put([replace(known, changed_at=now())])

    def note_search(self, generation: IndexVersion) -> None:
        """Put down effort and recall of a generation that is there still."""
        known = next((row for row in self._rows() if row.id == generation.id), None)
        if known is None and self.current().id == generation.id:
            known = self.current()
        if known is not None:
            noted = replace(known, effort=generation.effort, recall=generation.recall, measured=generation.measured)
            self._list.put([noted])

    def flip(self, generation: IndexVersion) -> None:
        """From now on it is searched; what it lacks is the caller's business."""
        built = replace(generation, stage=Stage.CURRENT, owner="", changed_at=now())
        self._list.put([built, replace(self.current(), stage=Stage.LEAVING, changed_at=now())])

    def abandon(self, generation: IndexVersion) -> None:
        row = self.building()
        if row is not None and (row.id, row.owner) == (generation.id, generation.owner):
            self._drop(row)

    def settle(self, whole: Sequence[Document]) -> list[Document]:
        """Bring a change of generation to its end: the `whole` documents whose number of passages is another now."""
        leaving = [row for row in self._rows() if row.stage == Stage.LEAVING]
        if not leaving:
            return []
        counts = {row.id: row.passages for row in self.passages(self.current()).documents()}
        return [
            replace(row, passages=counts[row.id]) for row in whole if counts.get(row.id, row.passages) != row.passages
        ]

    def settled(self) -> None:
        """The end is reached; what nobody can be searching any more goes."""
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
        self.passages(row).drop()
        self._list.drop([row.id])

    def _new(self, recipe: Recipe, stage: Stage) -> IndexVersion:
        last = max((int(row.id) for row in [*self._rows(), self._first()]), default=0)
        return IndexVersion(
            str(last + 1), recipe.embedding, recipe.tokens, recipe.overlap, stage, changed_at=now(), format=INDEX_FORMAT
        )

    def _first(self) -> IndexVersion:
        """Of an index that nobody listed generations of: of earlier days, or empty."""
        first = IndexVersion(embedding=self._recipe.embedding, changed_at=now(), format=INDEX_FORMAT)
        built_with = self.passages(first).built_with()
        if built_with is None:
            return replace(first, tokens=self._recipe.tokens, overlap=self._recipe.overlap)
        return replace(first, embedding=built_with)
