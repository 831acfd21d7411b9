"""A backup as one tar file; the manifest comes last and marks it complete."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import BackupFailed, BadRecord, CragError
from crag_core.base.serialization import from_plain, to_plain

_MOST = 256 * 2**20
"""Bytes of a manifest: that of a home of a million files."""
BESIDE = ("-wal", "-shm", ".lock", ".made")
"""How files end that are no part of a home."""
FORMAT = 1
NAME = "crag-backup.json"
"""The last file of an archive: one that was cut short lacks it."""

MARKER = "sample-indexed"
FOLDERS = ("index", "laboratory")
FILES = (sqlite_file.NAME, MARKER, "history.db", "audit.jsonl")
"""What is ever restored; folders, and the last two files, are in backups of earlier versions."""


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


def write_archive(folder: Path, counts: Counts, program: str, made_at: str, sink: Sink) -> Manifest:
    """All files of `folder`; nothing may change there meanwhile. `sink` need not be one that can be sought in."""
    entries = []
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(BESIDE)):
            name = path.relative_to(folder).as_posix()
            check_path(name)
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.mode = status.st_size, int(status.st_mtime), status.st_mode & 0o777
                checksum = hashlib.file_digest(file, "sha256").hexdigest()
                file.seek(0)
                archive.addfile(member, file)
            entries.append(Entry(name, member.size, checksum))
        manifest = Manifest(program, made_at, counts, tuple(entries))
        data = manifest.to_json()
        last = tarfile.TarInfo(NAME)
        last.size, last.mode = len(data), 0o600
        archive.addfile(last, io.BytesIO(data))
    return manifest


def read_archive(file: BinaryIO, folder: Path) -> Manifest:
    """Every file into `folder`, which is empty and of this caller alone; raises `BackupFailed` and may leave some."""
    with _explained(), tarfile.open(fileobj=file, mode="r:") as archive:
        members = {member.name: member for member in archive}
        last = archive.getmembers()[-1] if members else None
        if last is None or last.name != NAME or not _is_plain(last) or last.size > _MOST:
            raise BackupFailed(
                f"This is not a whole backup: its last file is not {NAME}.",
                hint="It was cut short, or is something else. Copy it once more, or take an earlier one.",
            )
        manifest = read_manifest(_content(archive, last).read())
        _check_names(archive.getmembers(), manifest)
        free = shutil.disk_usage(folder).free
        if manifest.size > free:
            raise BackupFailed(
                f"The backup needs {manifest.size / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free.",
                hint="Free some disk space.",
            )
        for entry in manifest.entries:
            _extract(archive, members[entry.path], entry, folder)
    return manifest


def _check_names(members: list[tarfile.TarInfo], manifest: Manifest) -> None:
    """The archive has the files of its list and nothing else: no links, devices, or files of elsewhere."""
    expected = {entry.path: entry.size for entry in manifest.entries} | {NAME: members[-1].size}
    for member in members:
        if not _is_plain(member) or expected.pop(member.name, None) != member.size:
            raise BackupFailed(
                f"The backup holds {member.name[:100]!r}, which is not a file of its list.",
                hint="It was changed after it was made. Take another one.",
            )
    if expected:
        raise BackupFailed(f"The backup lacks {min(expected)[:100]!r}.", hint="It is damaged. Take another one.")


def _is_plain(member: tarfile.TarInfo) -> bool:
    return member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and member.sparse is None


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, entry: Entry, folder: Path) -> None:
    target = folder / entry.path
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with target.open("x+b") as file:
        shutil.copyfileobj(_content(archive, member), file)
        file.flush()
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), member.mode & 0o777 | 0o600)
        file.seek(0)
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != entry.sha256:
        raise BackupFailed(
            f"The backup is damaged: {entry.path} is not what it was.",
            hint="Copy it once more, or take an earlier one.",
        )


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO:
    content = archive.extractfile(member)
    assert content is not None
    return content  # type: ignore[return-value]


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (CragError, OSError):
        raise
    except Exception as error:  # of tarfile, which meets bytes that it does not expect with errors of every kind
        raise BackupFailed(
            f"This is not a whole backup ({error}).", hint="Copy it once more, or take an earlier one."
        ) from error


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
            f"This is not a backup of a home: its {NAME} is wrong ({error}).", hint="Take an earlier backup."
        ) from error
    if len({entry.path for entry in manifest.entries}) < len(manifest.entries) or manifest.format != FORMAT:
        raise BackupFailed(f"This is not a backup of a home: its {NAME} is wrong.", hint="Take an earlier backup.")
    return manifest


def check_path(path: str) -> None:
    """Raises `ValueError` for one that does not name a file of a home."""
    parts = PurePosixPath(path).parts
    is_plain = "/".join(parts) == path and not {"..", ".", "/"} & {*parts} and not {"\\", "\0"} & {*path}
    if not is_plain or not (path in FILES or (len(parts) > 1 and parts[0] in FOLDERS)):
        raise ValueError(f"expected a file of a home, found {path[:100]!r}")
