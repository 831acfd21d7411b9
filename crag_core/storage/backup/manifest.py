"""The manifest of a backup: program, time, sizes and checksums."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

from crag_core.base.errors import BackupFailed, BadRecord
from crag_core.base.serialization import from_plain, to_plain

FORMAT = 1
NAME = "crag-backup.json"
"""The last file of an archive: one that was cut short lacks it."""

FOLDERS = ("index", "laboratory")
FILES = ("history.db", "audit.jsonl", "sample-indexed")
"""What of a home is backed up; nothing else is ever restored."""

_TAKE_ANOTHER = "Take an earlier backup."


@dataclass(frozen=True)
class Counts:
    documents: int = 0
    passages: int = 0
    runs: int = 0
    labels: int = 0
    sets: int = 0
    presets: int = 0

    def __str__(self) -> str:
        named = {name.replace("passages", "chunks"): number for name, number in asdict(self).items()}
        return ", ".join(f"{number} {name}" if number != 1 else f"1 {name[:-1]}" for name, number in named.items())


@dataclass(frozen=True)
class Entry:
    """`path` is that in the home, with "/" between."""

    path: str
    size: int
    sha256: str

    def __post_init__(self) -> None:
        check_path(self.path)
        if self.size < 0 or len(self.sha256) != 64:
            raise ValueError(f"{self.path}: expected a size and a checksum, found {self.size} and {self.sha256!r}")


@dataclass(frozen=True)
class Manifest:
    """`made_at` is an ISO time in UTC, `program` the version that made it."""

    program: str
    made_at: str
    counts: Counts
    entries: tuple[Entry, ...]
    format: int = FORMAT

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)

    def to_json(self) -> bytes:
        return json.dumps(to_plain(self), ensure_ascii=False, indent=1).encode()


def read_manifest(data: bytes) -> Manifest:
    """Raises `BackupFailed` for what no version, or only a later one, has written."""
    try:
        found = json.loads(data)
        made_with = found.get("format") if isinstance(found, dict) else None
        if isinstance(made_with, int) and made_with > FORMAT:
            raise BackupFailed(
                f"The backup was made by a later version of this program: it has format {made_with}, expected at most "
                f"{FORMAT}.",
                hint="Restore it with that version.",
            )
        manifest = from_plain(Manifest, found, NAME)
    except (ValueError, RecursionError, BadRecord) as error:
        raise BackupFailed(
            f"This is not a backup of a home: its {NAME} is wrong ({error}).", hint=_TAKE_ANOTHER
        ) from error
    paths = [entry.path for entry in manifest.entries]
    if len(set(paths)) < len(paths) or manifest.format != FORMAT:
        raise BackupFailed(f"This is not a backup of a home: its {NAME} is wrong.", hint=_TAKE_ANOTHER)
    return manifest


def check_path(path: str) -> None:
    """Raises `ValueError` for one that does not name a file of a home."""
    parts = PurePosixPath(path).parts
    is_plain = "/".join(parts) == path and not {"..", ".", "/"} & {*parts} and not {"\\", "\0"} & {*path}
    if not is_plain or not (path in FILES or (len(parts) > 1 and parts[0] in FOLDERS)):
        raise ValueError(f"expected a file of a home, found {path[:100]!r}")
