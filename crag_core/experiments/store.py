"""Labelled sets and presets as small text files, grades and outcomes of questions in SQLite, in one folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from crag_core.base.errors import BadRecord, ScoresUnavailable, UnknownName
from crag_core.base.serialization import from_plain, to_plain
from crag_core.experiments.comparison.outcome import MEANING, Outcome
from crag_core.experiments.comparison.setups import KeptSetup, Setup, read_setup
from crag_core.experiments.evaluators import KeptEvaluator
from crag_core.experiments.labelled.graded import Conditions, ScoredQuestion
from crag_core.experiments.labelled.questions import LabelledSet
from crag_core.experiments.labelled.read import Read, read_questions, write_questions
from crag_core.experiments.logs.record import RetrievalLog, parse_log
from crag_core.experiments.thresholds.preset import TunedPreset, parse_preset
from crag_core.storage import sqlite_file
from crag_core.trace.trace import Trace, in_present_words

BUSY_S = 10.0
_LAYOUT = """
CREATE TABLE IF NOT EXISTS conditions (fingerprint TEXT PRIMARY KEY, told TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS scored (
    conditions TEXT NOT NULL, key TEXT NOT NULL, facts TEXT NOT NULL, record BLOB NOT NULL,
    PRIMARY KEY (conditions, key)
) WITHOUT ROWID;
"""
_NAME = re.compile(r"[^\W_][\w .-]{0,58}[^\W]|[^\W_]")
_NOT_IN_NAMES = re.compile(r"[^\w .-]+")
_LONGEST_NAME = 60
_MOST_LOGS = 8  # in memory
_ONE_AT_A_TIME = Lock()  # of those that read a set and write it again
SETS, PRESETS, LOGS, EVALUATORS = "sets", "presets", "logs", "evaluators"
SCORES, OUTCOMES = "scores.db", "outcomes.db"


class Under(Protocol):
    """What a row depends on besides its question, a frozen record; equal ones have equal fingerprints."""

    @property
    def fingerprint(self) -> str: ...


class Keyed(Protocol):
    """What is kept of a run, a frozen record; `key` is that of its question."""

    @property
    def key(self) -> str: ...


Facts = TypeVar("Facts", bound=Keyed)


class OutcomeLog(Generic[Facts]):
    """The questions that were run under `conditions`, with facts of type `kind` and the whole record of each.

    Rows whose facts mean something else, by their `meaning`, cannot be read; one that names none has 1.
    Safe to use from several threads and processes; constructing it touches no disk, and only writing makes a file.
    Every method raises `ScoresUnavailable`.
    """

    def __init__(self, path: Path, conditions: Under, kind: type[Facts], meaning: int = 1) -> None:
        self._path = path
        self._kind = kind
        self._meaning = meaning
        self.conditions = conditions
        self._fingerprint = conditions.fingerprint

    def keys(self) -> set[str]:
        """Of the questions that are there."""
        return {key for (key,) in self._rows("SELECT key FROM scored WHERE conditions = ?", self._fingerprint)}

    def load(self) -> dict[str, Facts]:
        """By key, without the texts. A row that this version cannot read counts as not there."""
        found = {}
        for key, facts in self._rows("SELECT key, facts FROM scored WHERE conditions = ?", self._fingerprint):
            try:
                found[key] = self._read(json.loads(facts))
            except (BadRecord, ValueError):
                continue
        return found

    def _read(self, told: Any) -> Facts:
        meaning = told.pop("meaning", 1) if isinstance(told, dict) else 1
        if meaning != self._meaning:
            raise BadRecord(f"Facts of version {meaning!r}, expected {self._meaning}.", hint="Run the set again.")
        return from_plain(self._kind, in_present_words(told), "facts")

    def record(self, key: str) -> Trace | None:
        """The whole run behind a row; `BadRecord` for one that this version cannot read."""
        rows = self._rows("SELECT record FROM scored WHERE conditions = ? AND key = ?", self._fingerprint, key)
        try:
            return Trace.from_json(zlib.decompress(rows[0][0]).decode("ascii")) if rows else None
        except (zlib.error, UnicodeError) as error:
            raise BadRecord(f"This run cannot be read any more ({error}).", hint="Run the set again.") from error

    def records(self, keys: Collection[str]) -> dict[str, Trace]:
        """The whole runs of those with these keys, by key; one that this version cannot read counts as not there."""
        found = {}
        for key, record in self._rows("SELECT key, record FROM scored WHERE conditions = ?", self._fingerprint):
            if key in keys:
                with suppress(BadRecord, zlib.error, UnicodeError):
                    found[key] = Trace.from_json(zlib.decompress(record).decode("ascii"))
        return found

    def add(self, facts: Facts, trace: Trace) -> None:
        """In place of an earlier row of the same question."""
        meaning = {"meaning": self._meaning} if self._meaning > 1 else {}
        written = json.dumps(to_plain(facts) | meaning)
        record = zlib.compress(json.dumps(trace.to_dict()).encode("ascii"))
        with _open(self._path, writes=True) as database, database:
            conditions = (self._fingerprint, json.dumps(to_plain(self.conditions)))
            database.execute("INSERT OR IGNORE INTO conditions VALUES (?, ?)", conditions)
            row = (self._fingerprint, facts.key, written, record)
            database.execute("INSERT OR REPLACE INTO scored VALUES (?, ?, ?, ?)", row)

    def clear(self, keys: Collection[str] | None = None) -> None:
        """Forget what was run under these conditions: the questions with these keys; None: all."""
        if not sqlite_file.is_there(self._path):
            return
        own = (self._fingerprint,)
        with _open(self._path, writes=True) as database, database:
            if keys is None:
                database.execute("DELETE FROM scored WHERE conditions = ?", own)
            else:
                rows = ((self._fingerprint, key) for key in keys)
                database.executemany("DELETE FROM scored WHERE conditions = ? AND key = ?", rows)
            # Conditions without a row would keep their first name and day for whatever is run under them next.
            left = "SELECT 1 FROM scored WHERE conditions = fingerprint"
            database.execute(f"DELETE FROM conditions WHERE fingerprint = ? AND NOT EXISTS ({left})", own)

    def _rows(self, question: str, *values: str) -> list[tuple[Any, ...]]:
        if not sqlite_file.is_there(self._path):
            return []
        with _open(self._path) as database:
            return database.execute(question, values).fetchall()


class ScoreLog(OutcomeLog[ScoredQuestion]):
    """The questions graded under `conditions`."""

    def __init__(self, path: Path, conditions: Conditions) -> None:
        super().__init__(path, conditions, ScoredQuestion)


def kept_conditions(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """By fingerprint, conditions under which something is kept, as they were written, and the keys of its questions.

    Raises `ScoresUnavailable`.
    """
    if not sqlite_file.is_there(path):
        return {}
    with _open(path) as database:
        conditions = dict(database.execute("SELECT fingerprint, told FROM conditions").fetchall())
        rows = database.execute("SELECT conditions, key FROM scored").fetchall()
    keys: dict[str, set[str]] = {}
    for fingerprint, key in rows:
        keys.setdefault(fingerprint, set()).add(key)
    return {one: (conditions[one], frozenset(own)) for one, own in keys.items() if one in conditions}


@contextmanager
def _open(path: Path, writes: bool = False) -> Iterator[sqlite3.Connection]:
    try:
        if writes and not sqlite_file.is_there(path):
            sqlite_file.make(path, _LAYOUT, BUSY_S)
        with closing(_connect(path, writes)) as database:
            yield database
    except (sqlite3.Error, OSError) as error:
        raise ScoresUnavailable(
            f"What was run cannot be {'kept' if writes else 'read'} in {os.fspath(path)} ({error}).",
            hint=_hint(error),
        ) from error


def _connect(path: Path, writes: bool) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=BUSY_S)
    try:
        database.executescript(_LAYOUT)
    except sqlite3.Error as error:
        database.close()
        if writes or not _has_no_room(error):
            raise
        # Readers share a piece of memory in a file, for which a full disk has no room; who reads alone needs none.
        database = sqlite3.connect(path, timeout=BUSY_S)
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
    return database


def _hint(error: Exception) -> str:
    if _has_no_room(error):
        return "Free some disk space; if there is enough, look whether the disk is sound."
    if isinstance(error, TimeoutError) or _code(error) == sqlite3.SQLITE_BUSY:
        return "Another process keeps it locked: try again in a moment, or stop that process."
    return "Check the disk; a damaged file can be deleted, then the sets are run again."


def _has_no_room(error: Exception) -> bool:
    """Or the disk is broken, which SQLite tells by the same code."""
    return _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def _code(error: Exception) -> int:
    """Of SQLite; 0 for another's error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


# --- the folder -------------------------------------------------------------------------------------------------------


def set_name_of(title: str) -> str:
    """The nearest name to a title, such as that of a file, that a set may have."""
    kept = " ".join(_NOT_IN_NAMES.sub(" ", title).split()).strip(" ._-")
    return kept[:_LONGEST_NAME].strip(" ._-") or "questions"


class ExperimentFolder:
    """The folder `laboratory` of a home; constructing it touches no disk.

    Methods raise `ScoresUnavailable` where the disk does not answer, `BadRecord` for a name that no file can have.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logs: dict[str, tuple[tuple[int, int] | None, RetrievalLog]] = {}
        self._evaluators: tuple[object, dict[str, KeptEvaluator]] | None = None  # as they stood at these times

    def set_names(self) -> tuple[str, ...]:
        return self._names(SETS, ".jsonl")

    def load_set(self, name: str) -> Read:
        """The questions of a kept set; a file that somebody edited may have problems. `UnknownName` lists the sets."""
        return read_questions(name, self._read(SETS, name, ".jsonl", "labelled set"))

    def save_set(self, labelled: LabelledSet) -> None:
        """In place of an earlier one of that name."""
        self._write(self._path(SETS, labelled.name, ".jsonl"), write_questions(labelled.questions))

    def keep_set(self, labelled: LabelledSet, instead_of: LabelledSet | None = None) -> LabelledSet:
        """Save a set without losing another; it is returned as it is kept.

        It has its name (`set_name_of`) where that is free, or still stands for these questions or `instead_of`; else a
        number behind it.
        """
        name, text = set_name_of(labelled.name), write_questions(labelled.questions)
        may_be = {text} if instead_of is None else {text, write_questions(instead_of.questions)}
        with _ONE_AT_A_TIME:
            for number in count(1):
                ending = "" if number == 1 else f" {number}"
                path = self._path(SETS, f"{name[: _LONGEST_NAME - len(ending)].rstrip(' ._-')}{ending}", ".jsonl")
                with _explaining("read"):
                    is_ours = not path.exists() or (path.is_file() and path.read_text("utf-8", "replace") in may_be)
                if is_ours:
                    self._write(path, text)
                    break
        return replace(labelled, name=path.stem)

    def change_set(self, name: str, change: Callable[[LabelledSet], LabelledSet]) -> LabelledSet:
        """What `change` makes of a kept set, or of an empty one where there is none, and that it is kept.

        `BadRecord` for a file with rows that cannot be read: they would be lost.
        """
        with _ONE_AT_A_TIME:
            content = self._read(SETS, name, ".jsonl", "labelled set") if name in self.set_names() else b""
            read = read_questions(name, content) if content else Read((), (), ())
            if read.problems:
                first = read.problems[0]
                raise BadRecord(
                    f"The set {name!r} has a row that cannot be read, row {first.row}: {first.message}",
                    hint="Correct it in its file, or delete the set on the Tune page.",
                )
            changed = change(LabelledSet(name, read.questions))
            self.save_set(changed)
        return changed

    def delete_set(self, name: str) -> bool:
        """What was graded of it stays, for other sets with the same questions. True when it was there."""
        return self._delete(self._path(SETS, name, ".jsonl"))

    def log_names(self) -> tuple[str, ...]:
        return self._names(LOGS, ".jsonl")

    def load_log(self, name: str) -> RetrievalLog:
        """Read once while its file is the same. `UnknownName` lists the logs, `BadRecord` tells what is wrong."""
        path = self._path(LOGS, name, ".jsonl")
        try:
            stamp = (path.stat().st_mtime_ns, path.stat().st_size)
        except OSError:
            stamp = None  # reading it tells why
        known = self._logs.get(name)
        if known is None or known[0] != stamp:
            known = (stamp, parse_log(name, self._read(LOGS, name, ".jsonl", "log")))
            self._logs = dict([*self._logs.items(), (name, known)][-_MOST_LOGS:])
        return known[1]

    def keep_log(self, log: RetrievalLog) -> RetrievalLog:
        """Save a log without losing another, as `keep_set` does with sets; it is returned under the name it has now."""
        name, text = set_name_of(log.name), log.to_jsonl()
        with _ONE_AT_A_TIME:
            for number in count(1):
                ending = "" if number == 1 else f" {number}"
                path = self._path(LOGS, f"{name[: _LONGEST_NAME - len(ending)].rstrip(' ._-')}{ending}", ".jsonl")
                with _explaining("read"):
                    is_free = not path.exists() or (path.is_file() and path.read_text("utf-8", "replace") == text)
                if is_free:
                    self._write(path, text)
                    break
        return replace(log, name=path.stem)

    def delete_log(self, name: str) -> bool:
        """Sets with its questions stay, and what was graded of them; True when it was there."""
        return self._delete(self._path(LOGS, name, ".jsonl"))

    def preset_names(self) -> tuple[str, ...]:
        return self._names(PRESETS, ".toml")

    def load_preset(self, name: str) -> TunedPreset:
        """`UnknownName` lists the presets, `BadRecord` tells what is wrong with the file."""
        return parse_preset(self._read(PRESETS, name, ".toml", "preset").decode("utf-8", "replace"), name)

    def save_preset(self, preset: TunedPreset) -> Path:
        """In place of an earlier one of that name; the file."""
        path = self._path(PRESETS, preset.name, ".toml")
        self._write(path, preset.to_toml())
        return path

    def delete_preset(self, name: str) -> bool:
        return self._delete(self._path(PRESETS, name, ".toml"))

    def evaluators(self) -> dict[str, KeptEvaluator]:
        """Those that were calibrated, by name; one that this version cannot read is left out."""
        with _explaining("read"):
            files = (self._folder / EVALUATORS).glob("*.json")
            seen = tuple(sorted((path.name, path.stat().st_mtime_ns) for path in files))
        if self._evaluators is None or self._evaluators[0] != seen:
            self._evaluators = seen, self._read_evaluators()
        return dict(self._evaluators[1])

    def _read_evaluators(self) -> dict[str, KeptEvaluator]:
        found = {}
        for title in self._names(EVALUATORS, ".json"):
            try:
                plain = json.loads(self._read(EVALUATORS, title, ".json", "evaluator"))
                # Of earlier versions: models of interfaces that are gone.
                if plain.pop("interface", "") in ("span", "pruner") or "?as=" in plain["name"]:
                    continue
                plain.pop("strip_cutoff", None)
                kept = from_plain(KeptEvaluator, plain, "evaluator")
            except (BadRecord, UnknownName, ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue
            found[kept.name] = kept
        return found

    def save_evaluator(self, kept: KeptEvaluator) -> None:
        """In place of an earlier calibration of that name."""
        self._write(self._evaluator_path(kept.name), json.dumps(to_plain(kept), indent=1))

    def forget_evaluator(self, name: str) -> bool:
        return self._delete(self._evaluator_path(name))

    def _evaluator_path(self, name: str) -> Path:
        """Names of models hold what names of files may not."""
        told, apart = set_name_of(name.removeprefix("hf:"))[-40:].strip(" ._-"), hashlib.sha256(name.encode())
        return self._path(EVALUATORS, f"{told}-{apart.hexdigest()[:10]}", ".json")

    def scores(self, conditions: Conditions) -> ScoreLog:
        return ScoreLog(self._folder / SCORES, conditions)

    def outcomes(self, setup: Setup | KeptSetup) -> OutcomeLog[Outcome]:
        return OutcomeLog(self._folder / OUTCOMES, setup, Outcome, MEANING)

    def setups(self) -> tuple[KeptSetup, ...]:
        """Those that outcomes are kept under, the newest first, of one second by title of the policy.

        One that this version cannot read is left out.
        """
        found = []
        for fingerprint, (kept, keys) in kept_conditions(self._folder / OUTCOMES).items():
            try:
                found.append(KeptSetup(read_setup(json.loads(kept)), fingerprint, keys))
            except (BadRecord, ValueError, RecursionError):
                continue
        titled = sorted(found, key=lambda one: one.setup.settings.policy.title)
        return tuple(sorted(titled, key=lambda one: one.setup.created, reverse=True))

    def _path(self, kind: str, name: str, ending: str) -> Path:
        if not _NAME.fullmatch(name):
            raise BadRecord(
                f"{name[:80]!r} cannot be the name of a file here.",
                hint="Use 1 to 60 letters, digits, spaces, dots and dashes, with a letter or digit at both ends.",
            )
        return self._folder / kind / f"{name}{ending}"

    def _names(self, kind: str, ending: str) -> tuple[str, ...]:
        with _explaining("read"):
            found = (self._folder / kind).glob(f"*{ending}")
            return tuple(sorted((path.stem for path in found if _NAME.fullmatch(path.stem)), key=str.casefold))

    def _read(self, kind: str, name: str, ending: str, what: str) -> bytes:
        path = self._path(kind, name, ending)
        with _explaining("read"):
            if not path.is_file():
                raise UnknownName.among(what, name, self._names(kind, ending))
            return path.read_bytes()

    def _write(self, path: Path, text: str) -> None:
        """Whole or not at all, whatever happens meanwhile."""
        with _explaining("written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f".{path.name}.{os.getpid()}")
            try:
                beside.write_text(text, "utf-8")
                os.replace(beside, path)
            finally:
                beside.unlink(missing_ok=True)  # on a full disk the piece that was written would take the room

    def _delete(self, path: Path) -> bool:
        with _explaining("written"):
            was_there = path.is_file()
            path.unlink(missing_ok=True)
            return was_there


@contextmanager
def _explaining(purpose: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ScoresUnavailable(
            f"Labelled sets and presets cannot be {purpose} ({error}).",
            hint="Check the disk and the rights of CRAG_HOME.",
        ) from error
