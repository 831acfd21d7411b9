"""Labelled sets and presets as small text files in a folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crag_core.base.errors import BadRecord, ScoresUnavailable, UnknownName
from crag_core.base.serialization import from_plain
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.setups import KeptSetup, Setup
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.labelled.questions import LabelledSet
from crag_core.experiments.labelled.read import Read, read_questions, write_questions
from crag_core.experiments.store.score_log import OutcomeLog, ScoreLog, kept_conditions
from crag_core.experiments.thresholds.preset import TunedPreset, parse_preset

_NAME = re.compile(r"[^\W_][\w .-]{0,58}[^\W]|[^\W_]")
SETS, PRESETS, SCORES, OUTCOMES = "sets", "presets", "scores.db", "outcomes.db"


class ExperimentFolder:
    """The folder `laboratory` of a home; constructing it touches no disk.

    Methods raise `ScoresUnavailable` where the disk does not answer, `BadRecord` for a name that no file can have.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def set_names(self) -> tuple[str, ...]:
        return self._names(SETS, ".jsonl")

    def load_set(self, name: str) -> Read:
        """The questions of a kept set; a file that somebody edited may have problems. `UnknownName` lists the sets."""
        return read_questions(name, self._read(SETS, name, ".jsonl", "labelled set"))

    def save_set(self, labelled: LabelledSet) -> None:
        """In place of an earlier one of that name."""
        self._write(self._path(SETS, labelled.name, ".jsonl"), write_questions(labelled.questions))

    def delete_set(self, name: str) -> bool:
        """What was graded of it stays, for other sets with the same questions. True when it was there."""
        return self._delete(self._path(SETS, name, ".jsonl"))

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

    def scores(self, conditions: Conditions) -> ScoreLog:
        return ScoreLog(self._folder / SCORES, conditions)

    def outcomes(self, setup: Setup | KeptSetup) -> OutcomeLog[Outcome]:
        return OutcomeLog(self._folder / OUTCOMES, setup, Outcome)

    def setups(self) -> tuple[KeptSetup, ...]:
        """Those that outcomes are kept under, the newest first, of one second by title of the policy.

        One that this version cannot read is left out.
        """
        found = []
        for fingerprint, (kept, keys) in kept_conditions(self._folder / OUTCOMES).items():
            try:
                found.append(KeptSetup(from_plain(Setup, json.loads(kept), "setup"), fingerprint, keys))
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
