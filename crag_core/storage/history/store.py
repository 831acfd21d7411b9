"""The history: recorded runs and their labels."""

from __future__ import annotations

import json
import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import BadRecord, HistoryUnavailable
from crag_core.base.protocols import Clock
from crag_core.base.serialization import fingerprint, from_plain, to_plain
from crag_core.base.text.words import storable
from crag_core.storage.history.runs import EVERYTHING, KeptRun, Selection, columns_of, kept_run, measured_of
from crag_core.trace.feedback import Label
from crag_core.trace.summary import Measured
from crag_core.trace.trace import Trace

if TYPE_CHECKING:
    from crag_core.storage.history.database import Database
    from crag_core.storage.history.tables import Rows

T = TypeVar("T")
Empty = TypeVar("Empty")

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_HOUR, _DAY = 3600.0, 86400.0


class HistoryStore:
    """Safe to use from several threads and processes. `place` None: nothing is kept, and every method says so.

    All methods raise `HistoryUnavailable`. Constructing it touches no disk, and only writing makes a file. `problem` is
    what went wrong last, "" once something works again.
    """

    def __init__(
        self, place: Path | str | None, clock: Clock = time.time, days: float = 0.0, elapsed: Clock = time.monotonic
    ) -> None:
        """`days` is how long a run is kept, 0: for ever. `elapsed` only grows, whatever is done to the clock."""
        self._place = place
        self.problem = ""
        self._clock = clock
        self.days = days
        self._elapsed = elapsed
        self._pruned_at = -math.inf
        if isinstance(place, str):
            _ = self._database  # which refuses a URL that cannot be used

    @property
    def is_on(self) -> bool:
        return self._place is not None

    def save(self, trace: Trace, asked_by: str = "") -> None:
        """Keep a run; a record grows, so of one id the last one saved holds. Who asked first stays who asked."""
        with self._writing() as rows:
            self._put(rows, _key(trace.id), trace, asked_by, imported=False)

    def save_import(self, trace: Trace, asked_by: str = "") -> Trace:
        """Keep a run that came from elsewhere, and give it back under the id that it is kept under.

        It never takes the place of another: an id that a run of other content has, or that no link can carry, becomes
        one that is made from the content. The same run once more stays the one that is there.
        """
        own = trace if _ID.fullmatch(trace.id) else _renamed(trace)
        with self._writing() as rows:
            while (kept := rows.record(own.id)) is not None and not _is_record_of(kept, own):
                own = _renamed(own)
            if kept is None:
                self._put(rows, own.id, own, asked_by, imported=True)
        return own

    def load(self, run_id: str) -> Trace | None:
        """Raises `BadRecord` too, for a record that this version cannot read."""
        record = self._read(lambda rows: rows.record(_key(run_id)), None)
        return None if record is None else Trace.from_json(record)

    def find(self, run_id: str) -> KeptRun | None:
        return next(iter(self.search(Selection(ids=(_key(run_id),)))), None)

    def search(self, selection: Selection = EVERYTHING, limit: int = 50, skip: int = 0) -> tuple[KeptRun, ...]:
        return self._read(lambda rows: _runs(rows, rows.runs(selection, limit, skip)), ())

    def count(self, selection: Selection = EVERYTHING) -> int:
        return self._read(lambda rows: rows.count(selection), 0)

    def policies(self, selection: Selection = EVERYTHING) -> tuple[str, ...]:
        return tuple(filter(None, self._read(lambda rows: rows.policies(selection), ())))

    def measured(self, selection: Selection = EVERYTHING) -> tuple[Measured, ...]:
        """Oldest first, without runs from elsewhere, which nobody asked here, and without what cannot be read."""
        found = self._read(lambda rows: rows.runs(replace(selection, imported=False))[::-1], ())
        return tuple(measured_of(row) for row in found if row["readable"])

    def export(self, selection: Selection = EVERYTHING) -> Iterator[Trace]:
        """Newest first, one record in memory at a time; those that this version cannot read are left out.

        What is deleted meanwhile is left out too, and what comes in meanwhile.
        """
        for run_id in self._read(lambda rows: rows.ids(selection), ()):
            try:
                found = self.load(run_id)
            except BadRecord:
                continue
            if found is not None:
                yield found

    def delete_all(self, selection: Selection) -> int:
        """Their labels go with them. How many runs there were."""
        with self._writing() as rows:
            return rows.delete_runs(selection)

    def prune(self, older_than_days: float) -> int:
        """Delete runs that were first kept so long ago, with their labels; how many. Nothing for 0 days.

        A clock that jumps ahead makes everything look old. So age is counted by a time of its own, which follows the
        clock, but by a day at most each time that old runs are deleted, which is once an hour: only a clock that is
        wrong for days deletes young runs, and after a pause of weeks old runs are deleted within some days.
        """
        if older_than_days <= 0:
            return 0
        if not self._read(lambda rows: True, False):
            return 0
        with self._writing() as rows:
            now = rows.advance(self._clock(), _DAY)
            return 0 if now is None else rows.delete_runs(Selection(until=now - older_than_days * _DAY))

    def add_label(self, label: Label) -> None:
        """It takes the place of an earlier one of the same thing."""
        values = {
            "run_id": _key(label.run_id),
            "kept_at": self._clock(),
            "about": label.about.value,
            "mark": label.mark.value,
            "label": json.dumps(to_plain(label)),
        }
        with self._writing() as rows:
            rows.put_label(label.key, values)

    def remove_label(self, label: Label) -> bool:
        """Take back whatever was said of that thing. True when there was something."""
        with self._writing() as rows:
            return rows.delete_label(label.key)

    def labels(self, run_id: str) -> tuple[Label, ...]:
        return tuple(map(_read_label, self._read(lambda rows: rows.labels(_key(run_id)), ())))

    def all_labels(self) -> tuple[Label, ...]:
        return tuple(map(_read_label, self._read(lambda rows: rows.labels(), ())))

    def take_over(self, file: Path) -> None:
        """Add the runs and labels of `file`, a history of its own by an earlier version, but those that are there."""
        with sqlite_file.earlier(file) as source, self._writing() as rows:
            rows.take_over(source)

    def _put(self, rows: Rows, key: str, trace: Trace, asked_by: str, imported: bool) -> None:
        at_first = {"kept_at": self._clock(), "imported": imported, "asked_by": storable(asked_by)}
        # In ASCII, where every text can be written that a record can hold.
        record = json.dumps(trace.to_dict(), separators=(",", ":"))
        rows.put_run(key, columns_of(trace) | {"record": record}, at_first)

    def _read(self, work: Callable[[Rows], T], empty: Empty) -> T | Empty:
        self._prune_when_due(every=math.inf)
        with self._noting():
            return self._database.read(work, empty)

    @contextmanager
    def _writing(self) -> Iterator[Rows]:
        self._prune_when_due(every=_HOUR)
        with self._noting(), self._database.writing() as rows:
            yield rows

    @contextmanager
    def _noting(self) -> Iterator[None]:
        if not self.is_on:
            raise HistoryUnavailable(
                "Runs and labels are not kept: CRAG_HISTORY is off.", hint="Set CRAG_HISTORY=disk and start again."
            )
        try:
            yield
        except HistoryUnavailable as error:
            self.problem = str(error)
            raise
        self.problem = ""

    @cached_property
    def _database(self) -> Database:
        from crag_core.storage.history.database import Database

        assert self._place is not None
        return Database(self._place)

    def _prune_when_due(self, every: float) -> None:
        """At the first use, and then when something is written and the last time is so many seconds ago.

        Whoever uses the history has no part in it: where it fails, it is tried again after the same time.
        """
        now = self._elapsed()
        if self.days and self.is_on and (self._pruned_at == -math.inf or now - self._pruned_at >= every):
            self._pruned_at = now
            with suppress(HistoryUnavailable):
                self.prune(self.days)


def _is_record_of(record: str, trace: Trace) -> bool:
    try:
        return Trace.from_json(record) == trace
    except BadRecord:  # of another version
        return False


def _renamed(trace: Trace) -> Trace:
    return replace(trace, id=f"imported-{fingerprint(trace)}")


def _key(id: str) -> str:
    """An id as the database has it; one that it might refuse goes by its fingerprint."""
    return id if _ID.fullmatch(id) else f"other-{fingerprint(id)}"


def _runs(rows: Rows, found: Sequence[Mapping[str, Any]]) -> tuple[KeptRun, ...]:
    marks: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for run_id, about, mark in rows.marks([row["id"] for row in found]):
        marks[run_id].append((about, mark))
    return tuple(kept_run(row, marks[row["id"]]) for row in found)


def _read_label(text: str) -> Label:
    try:
        return from_plain(Label, json.loads(text), "label")
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"This is not a kept label: not valid JSON ({error}).") from error
