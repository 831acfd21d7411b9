"""Labelled sets, presets, logs and calibrations, and what was graded and run of them, in the file of a home."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import fields, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, Generic, TypeVar

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import BadRecord, ScoresUnavailable, UnknownName
from crag_core.base.serialization import from_plain, to_plain
from crag_core.experiments.comparison.outcome import MEANING, Outcome, Setup
from crag_core.experiments.evaluators import KeptEvaluator
from crag_core.experiments.labelled.graded import Conditions, ScoredQuestion
from crag_core.experiments.labelled.questions import LabelledSet
from crag_core.experiments.labelled.read import Read, read_questions, write_questions
from crag_core.experiments.logs.record import RetrievalLog, parse_log
from crag_core.experiments.statistics.calibration import Calibration
from crag_core.experiments.thresholds.preset import TunedPreset, parse_preset
from crag_core.trace.trace import Trace, in_present_words

# The number of a text is another one whenever it was written.
_LAYOUT = """
CREATE TABLE crag_texts (
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, text BLOB NOT NULL,
  UNIQUE (kind, name));
CREATE TABLE crag_scored (
  log TEXT NOT NULL, conditions TEXT NOT NULL, key TEXT NOT NULL, facts TEXT NOT NULL, record BLOB NOT NULL,
  PRIMARY KEY (log, conditions, key))
"""
_UNDER = "FROM crag_scored WHERE log = ? AND conditions = ?"
_NAME = re.compile(r"[^\W_][\w .-]{0,58}[^\W]|[^\W_]")
_NOT_IN_NAMES = re.compile(r"[^\w .-]+")
_LONGEST_NAME = 60
_MOST_LOGS = 8  # in memory
_GONE = {"strips", "label", "known", "exact", "f1", "beyond"}
SETS, PRESETS, LOGS, EVALUATORS = "sets", "presets", "logs", "evaluators"
KINDS = {SETS: "labelled set", PRESETS: "preset", LOGS: "log", EVALUATORS: "evaluator"}
SCORES, OUTCOMES = "scores", "outcomes"
_CURVE = {field.name for field in fields(Calibration)}


Facts = TypeVar("Facts", ScoredQuestion, Outcome)


class OutcomeLog(Generic[Facts]):
    """The questions that were run under `conditions`, with facts of type `kind` and the whole record of each.

    Rows whose facts mean something else, by their `meaning`, cannot be read; one that names none has 1.
    Every method raises `ScoresUnavailable`.
    """

    def __init__(
        self,
        tables: sqlite_file.Tables,
        log: str,
        conditions: Conditions | Setup,
        kind: type[Facts],
        meaning: int = 1,
    ) -> None:
        self._tables = tables
        self._kind: type[Facts] = kind
        self._meaning = meaning
        self.conditions = conditions
        self._own = (log, conditions.fingerprint)

    @property
    def state(self) -> object:
        """Another one once a row was added, or took the place of another."""
        return self._tables.rows(f"SELECT COUNT(*), MAX(rowid) {_UNDER}", *self._own)

    def load(self) -> dict[str, Facts]:
        """By key, without the texts. A row that this version cannot read counts as not there."""
        found = {}
        for key, facts in self._tables.rows(f"SELECT key, facts {_UNDER}", *self._own):
            with suppress(BadRecord, ValueError, AttributeError, TypeError):
                told = json.loads(facts, object_hook=_without_gone)
                if told.pop("meaning", 1) == self._meaning:
                    found[key] = from_plain(self._kind, in_present_words(told), "facts")
        return found

    def record(self, key: str) -> Trace | None:
        """The whole run behind a row; `BadRecord` for one that this version cannot read."""
        rows = self._tables.rows(f"SELECT record {_UNDER} AND key = ?", *self._own, key)
        return _unpacked(rows[0][0]) if rows else None

    def records(self, keys: Collection[str]) -> dict[str, Trace]:
        """The whole runs of those with these keys, by key; one that this version cannot read counts as not there."""
        found = {}
        for key, record in self._tables.rows(f"SELECT key, record {_UNDER}", *self._own):
            with suppress(BadRecord):
                if key in keys:
                    found[key] = _unpacked(record)
        return found

    def add(self, facts: Facts, trace: Trace) -> None:
        """In place of an earlier row of the same question."""
        meaning = {"meaning": self._meaning} if self._meaning > 1 else {}
        written = json.dumps(to_plain(facts) | meaning)
        record = zlib.compress(json.dumps(trace.to_dict()).encode("ascii"))
        row = (*self._own, facts.key, written, record)
        with self._tables.writing() as database:
            database.execute("INSERT OR REPLACE INTO crag_scored VALUES (?, ?, ?, ?, ?)", row)


def _without_gone(plain: dict[str, Any]) -> dict[str, Any]:
    """Without facts of earlier versions, which nothing reads any more."""
    return {name: value for name, value in plain.items() if name not in _GONE}


def _unpacked(record: bytes) -> Trace:
    try:
        return Trace.from_json(zlib.decompress(record).decode("ascii"))
    except (zlib.error, UnicodeError) as error:
        raise BadRecord(f"This run cannot be read any more ({error}).", hint="Run the set again.") from error


# --- all of them ------------------------------------------------------------------------------------------------------


def set_name_of(title: str) -> str:
    """The nearest name to a title, such as that of a file, that a set may have."""
    kept = " ".join(_NOT_IN_NAMES.sub(" ", title).split()).strip(" ._-")
    return kept[:_LONGEST_NAME].strip(" ._-") or "questions"


class ExperimentStore:
    """In the file of a home; constructing it touches no disk.

    Methods raise `ScoresUnavailable` where the disk does not answer, `BadRecord` for a name that nothing can have.
    """

    def __init__(self, home: Path) -> None:
        self.tables = sqlite_file.Tables(
            home / sqlite_file.NAME, "Sets, presets and outcomes in", _LAYOUT, ScoresUnavailable
        )
        self._logs: dict[str, tuple[int, RetrievalLog]] = {}
        self._evaluators: tuple[object, dict[str, KeptEvaluator]] = ((), {})

    def set_names(self) -> tuple[str, ...]:
        return self._names(SETS)

    def load_set(self, name: str) -> Read:
        """One that an earlier version kept may have problems. `UnknownName` lists the sets."""
        return read_questions(name, self._load(SETS, name)[1])

    def find_set(self, name: str) -> LabelledSet:
        """Empty where there is none."""
        return LabelledSet(name, self.load_set(name).questions if name in self.set_names() else ())

    def keep_set(self, labelled: LabelledSet, instead_of: LabelledSet | None = None) -> LabelledSet:
        """Save a set without losing another; it is returned as it is kept.

        It has its name (`set_name_of`) where that is free, or still stands for these questions or `instead_of`; else a
        number behind it.
        """
        text = write_questions(labelled.questions)
        may_be = {text} if instead_of is None else {text, write_questions(instead_of.questions)}
        return replace(labelled, name=self._keep(SETS, labelled.name, text, may_be))

    def change_set(self, name: str, change: Callable[[LabelledSet], LabelledSet]) -> LabelledSet:
        """What `change` makes of a kept set, or of an empty one where there is none, and that it is kept.

        Nobody else writes meanwhile. `BadRecord` for a set with rows that cannot be read: they would be lost.
        """
        _check_name(name)
        with self.tables.writing() as database:
            content = _content(database, SETS, name)
            read = read_questions(name, content) if content else Read((), (), ())
            if read.problems:
                first = read.problems[0]
                raise BadRecord(
                    f"The set {name!r} has a row that cannot be read. {first.told}",
                    hint="Download it and correct it, or delete it on the Tune page.",
                )
            changed = change(LabelledSet(name, read.questions))
            _put(database, SETS, changed.name, write_questions(changed.questions))
        return changed

    def delete_set(self, name: str) -> bool:
        """What was graded of it stays, for other sets with the same questions. True when it was there."""
        return self._delete(SETS, name)

    def log_names(self) -> tuple[str, ...]:
        return self._names(LOGS)

    def load_log(self, name: str) -> RetrievalLog:
        """Parsed once while it is the same. `UnknownName` lists the logs, `BadRecord` tells what is wrong."""
        rows = self.tables.rows("SELECT number FROM crag_texts WHERE kind = ? AND name = ?", LOGS, name)
        known = self._logs.get(name)
        if known is None or rows != [(known[0],)]:
            number, text = self._load(LOGS, name)
            known = (number, parse_log(name, text))
            self._logs = dict([*self._logs.items(), (name, known)][-_MOST_LOGS:])
        return known[1]

    def keep_log(self, log: RetrievalLog) -> RetrievalLog:
        """Save a log without losing another, as `keep_set` does with sets; it is returned under the name it has now."""
        text = log.to_jsonl()
        return replace(log, name=self._keep(LOGS, log.name, text, {text}))

    def delete_log(self, name: str) -> bool:
        """Sets with its questions stay, and what was graded of them; True when it was there."""
        return self._delete(LOGS, name)

    def preset_names(self) -> tuple[str, ...]:
        return self._names(PRESETS)

    def load_preset(self, name: str) -> TunedPreset:
        """`UnknownName` lists the presets, `BadRecord` tells what is wrong with it."""
        return parse_preset(self._load(PRESETS, name)[1].decode("utf-8", "replace"), name)

    def save_preset(self, preset: TunedPreset) -> None:
        """In place of an earlier one of that name."""
        self._save(PRESETS, preset.name, preset.to_toml())

    def delete_preset(self, name: str) -> bool:
        return self._delete(PRESETS, name)

    def evaluators(self) -> dict[str, KeptEvaluator]:
        """Those that were calibrated, by name; one that this version cannot read is left out."""
        rows = self.tables.rows("SELECT number, text FROM crag_texts WHERE kind = ? ORDER BY name", EVALUATORS)
        seen = [number for number, _ in rows]
        if self._evaluators[0] != seen:
            read = [_read_evaluator(text) for _, text in rows]
            self._evaluators = seen, {kept.name: kept for kept in read if kept}
        return dict(self._evaluators[1])

    def save_evaluator(self, kept: KeptEvaluator) -> None:
        """In place of an earlier calibration of that name."""
        self._save(EVALUATORS, _title(kept.name), json.dumps(to_plain(kept), indent=1))

    def scores(self, conditions: Conditions) -> OutcomeLog[ScoredQuestion]:
        return OutcomeLog(self.tables, SCORES, conditions, ScoredQuestion)

    def outcomes(self, setup: Setup) -> OutcomeLog[Outcome]:
        return OutcomeLog(self.tables, OUTCOMES, setup, Outcome, MEANING)

    def take_over(self, path: Path) -> None:
        """Add what is not there: `path` is the folder of a kind, or the file of a log, of an earlier version."""
        if path.is_dir():
            files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
            texts = [(path.name, file.stem, file.read_bytes()) for file in files]
            with self.tables.writing() as database:
                database.executemany("INSERT OR IGNORE INTO crag_texts (kind, name, text) VALUES (?, ?, ?)", texts)
            return
        with sqlite_file.earlier(path) as source, self.tables.writing() as database:
            add = f"INSERT OR IGNORE INTO crag_scored VALUES ('{path.stem}', ?, ?, ?, ?)"
            database.executemany(add, source.execute("SELECT * FROM scored"))

    def _names(self, kind: str) -> tuple[str, ...]:
        found = self.tables.rows("SELECT name FROM crag_texts WHERE kind = ?", kind)
        return tuple(sorted((name for (name,) in found if _NAME.fullmatch(name)), key=str.casefold))

    def _load(self, kind: str, name: str) -> tuple[int, bytes]:
        _check_name(name)
        rows = self.tables.rows("SELECT number, text FROM crag_texts WHERE kind = ? AND name = ?", kind, name)
        if not rows:
            raise UnknownName.among(KINDS[kind], name, self._names(kind))
        return rows[0]  # type: ignore[return-value]

    def _save(self, kind: str, name: str, text: str) -> None:
        _check_name(name)
        with self.tables.writing() as database:
            _put(database, kind, name, text)

    def _keep(self, kind: str, title: str, text: str, may_be: Collection[str]) -> str:
        """Under a name that is free, or has one of these texts."""
        name = set_name_of(title)
        endings = chain([""], (f" {number}" for number in count(2)))
        names = (f"{name[: _LONGEST_NAME - len(ending)].rstrip(' ._-')}{ending}" for ending in endings)
        free = (None, *(one.encode() for one in may_be))
        with self.tables.writing() as database:
            own = next(one for one in names if _content(database, kind, one) in free)
            _put(database, kind, own, text)
        return own

    def _delete(self, kind: str, name: str) -> bool:
        _check_name(name)
        if name not in self._names(kind):
            return False
        with self.tables.writing() as database:
            return database.execute("DELETE FROM crag_texts WHERE kind = ? AND name = ?", (kind, name)).rowcount > 0


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadRecord(
            f"{name[:80]!r} cannot be a name here.",
            hint="Use 1 to 60 letters, digits, spaces, dots and dashes, with a letter or digit at both ends.",
        )


def _content(database: sqlite3.Connection, kind: str, name: str) -> bytes | None:
    found = database.execute("SELECT text FROM crag_texts WHERE kind = ? AND name = ?", (kind, name)).fetchone()
    return bytes(found[0]) if found else None


def _put(database: sqlite3.Connection, kind: str, name: str, text: str) -> None:
    row = (kind, name, text.encode())
    database.execute("INSERT OR REPLACE INTO crag_texts (kind, name, text) VALUES (?, ?, ?)", row)


def _title(name: str) -> str:
    """Names of models hold what names here may not."""
    told = set_name_of(name.removeprefix("hf:"))[-40:].strip(" ._-")
    return f"{told}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def _read_evaluator(text: bytes) -> KeptEvaluator | None:
    try:
        plain = json.loads(text)
        # Of earlier versions: models of interfaces that are gone.
        if plain.pop("interface", "") in ("span", "pruner") or "?as=" in plain["name"]:
            return None
        plain.pop("strip_cutoff", None)
        plain["curve"] = {key: value for key, value in plain["curve"].items() if key in _CURVE}
        return from_plain(KeptEvaluator, plain, "evaluator")
    except (BadRecord, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
