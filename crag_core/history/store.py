"""Runs and labels, kept for good."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag_core.errors import BadRecord, HistoryUnavailable
from crag_core.history.database import Database
from crag_core.kept import KeptRun
from crag_core.labels import Label
from crag_core.protocols import Clock
from crag_core.records import fingerprint, from_plain, to_plain
from crag_core.trace import Trace
from crag_core.types import Action

if TYPE_CHECKING:
    from crag_core.history.rows import Rows

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_LONGEST = 300  # characters of a question, or of a name, in what is told of a run; the record has all


class HistoryStore:
    """Safe to use from several threads and processes. `place` None: nothing is kept, and every method says so.

    All methods raise `HistoryUnavailable`. Constructing it touches no disk, and only writing makes a file. `problem` is
    what went wrong last, "" once something works again.
    """

    def __init__(self, place: Path | str | None, clock: Clock = time.time) -> None:
        self._database = None if place is None else Database(place)
        self._clock = clock

    @property
    def is_on(self) -> bool:
        return self._database is not None

    @property
    def problem(self) -> str:
        return self._database.problem if self._database else ""

    def save(self, trace: Trace) -> None:
        """Keep a run; a record grows, so of one id the last one saved holds."""
        values = _told(trace) | {"record": _dump(trace)}
        with self._writing() as rows:
            rows.put_run(_key(trace.id), values, {"kept_at": self._clock(), "imported": False})

    def save_import(self, trace: Trace) -> Trace:
        """Keep a run that came from elsewhere, and give it back under the id that it is kept under.

        It never takes the place of another: an id that a run of other content has, or that no link can carry, becomes
        one that is made from the content. The same run once more stays the one that is there.
        """
        own = trace if _ID.fullmatch(trace.id) else _renamed(trace)
        with self._writing() as rows:
            while (kept := rows.record(own.id)) is not None and not _is_record_of(kept, own):
                own = _renamed(own)
            if kept is None:
                values = _told(own) | {"record": _dump(own)}
                rows.put_run(own.id, values, {"kept_at": self._clock(), "imported": True})
        return own

    def load(self, run_id: str) -> Trace | None:
        """Raises `BadRecord` too, for a record that this version cannot read."""
        with self._reading() as rows:
            record = rows.record(_key(run_id)) if rows else None
        return None if record is None else Trace.from_json(record)

    def find(self, run_id: str) -> KeptRun | None:
        """One run without its record."""
        with self._reading() as rows:
            found = rows.run(_key(run_id)) if rows else None
        return None if found is None else _kept_run(found)

    def recent(self, limit: int = 50, skip: int = 0) -> tuple[KeptRun, ...]:
        """Newest first, by when they were first kept."""
        with self._reading() as rows:
            found = rows.recent_runs(limit, skip) if rows else ()
        return tuple(map(_kept_run, found))

    def delete(self, run_id: str) -> bool:
        """Its labels go with it. True when it was there."""
        with self._writing() as rows:
            return rows.delete_run(_key(run_id))

    def add_label(self, label: Label) -> None:
        """It takes the place of an earlier one of the same thing."""
        values = {"run_id": _key(label.run_id), "kept_at": self._clock(), "label": json.dumps(to_plain(label))}
        with self._writing() as rows:
            rows.put_label(label.key, values)

    def remove_label(self, label: Label) -> bool:
        """Take back whatever was said of that thing. True when there was something."""
        with self._writing() as rows:
            return rows.delete_label(label.key)

    def labels(self, run_id: str) -> tuple[Label, ...]:
        """Of one run, oldest first."""
        with self._reading() as rows:
            found = rows.labels(_key(run_id)) if rows else ()
        return tuple(map(_read_label, found))

    def all_labels(self) -> tuple[Label, ...]:
        """Of all runs, oldest first."""
        with self._reading() as rows:
            found = rows.labels() if rows else ()
        return tuple(map(_read_label, found))

    def _reading(self) -> AbstractContextManager[Rows | None]:
        return self._used().reading()

    def _writing(self) -> AbstractContextManager[Rows]:
        return self._used().writing()

    def _used(self) -> Database:
        if self._database is None:
            raise HistoryUnavailable(
                "Runs and labels are not kept: CRAG_HISTORY is off.", hint="Set CRAG_HISTORY=disk and start again."
            )
        return self._database


def _dump(trace: Trace) -> str:
    """In ASCII, where every text can be written that a record can hold."""
    return json.dumps(trace.to_dict(), separators=(",", ":"))


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


def _told(trace: Trace) -> dict[str, Any]:
    settings = trace.settings
    texts = {
        "created": trace.created,
        "question": trace.question,
        "action": trace.decision.action.value if trace.decision else "",
        "policy": settings.policy.name,
        "evaluator": settings.evaluator.name,
    }
    return {name: _UNSTORABLE.sub("\ufffd", text)[:_LONGEST] for name, text in texts.items()}


def _kept_run(row: Mapping[str, Any]) -> KeptRun:
    action = Action(row["action"]) if row["action"] in list(Action) else None
    texts = {name: row[name] for name in ("id", "created", "question", "policy", "evaluator")}
    return KeptRun(**texts, action=action, is_imported=row["imported"])


def _read_label(text: str) -> Label:
    try:
        return from_plain(Label, json.loads(text), "label")
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"This is not a kept label: not valid JSON ({error}).") from error
