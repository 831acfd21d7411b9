"""What is not a whole backup of ours is refused, and leaves nothing; nor does a restore ever replace anything."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crag_core.__main__ import main
from crag_core.storage.backup.archive import NAME
from tests.deployment.homes import fill, open_home

Output = pytest.CaptureFixture[str]
Member = tuple[tarfile.TarInfo, bytes]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it would go."""
    folder = tmp_path / "inside" / "home"
    folder.parent.mkdir()
    monkeypatch.setenv("CRAG_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    fill(folder / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRAG_HOME", str(folder / "home"))
        assert main(["backup", str(folder / "home.tar")]) == 0
    return folder / "home.tar"


def members_of(archive: Path) -> list[Member]:
    with tarfile.open(archive) as opened:
        return [(member, opened.extractfile(member).read()) for member in opened]  # type: ignore[union-attr]


def file(name: str, data: bytes = b"x", **fields: Any) -> Member:
    member = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(member, field, value)
    return member, data


def write(path: Path, members: list[Member], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for member, data in members:
            member.size = len(data) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(data))
    return path


def listed(*members: Member, **fields: Any) -> list[Member]:
    """With a list of contents that names them, as somebody would who means harm."""
    entries = [
        {"path": member.name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for member, data in members
    ]
    manifest = {"program": "0.1.0", "made_at": "now", "counts": {}, "entries": entries, "format": 1} | fields
    return [*members, file(NAME, json.dumps(manifest).encode())]


def names_around(home: Path) -> list[Path]:
    """Without what SQLite keeps beside a file that is open."""
    return sorted(path for path in home.parent.parent.rglob("*") if not path.name.endswith(("-wal", "-shm")))


def refuse(archive: Path, home: Path, told: str, capsys: Output, code: int = 1) -> None:
    around = names_around(home)
    assert main(["restore", str(archive)]) == code
    shown = capsys.readouterr()
    assert told in shown.err and shown.err.startswith("error: ") and shown.out == ""
    assert names_around(home) == around, "nothing was left, nothing was changed"


def test_a_folder_that_is_empty_is_replaced(home: Path, whole: Path) -> None:
    home.mkdir()
    assert main(["restore", str(whole)]) == 0
    assert len(open_home(home).store.documents()) == 2


@pytest.mark.parametrize("name", ["history.db", ".env", "index"])
def test_a_home_that_holds_anything_stays_as_it_is(name: str, home: Path, whole: Path, capsys: Output) -> None:
    home.mkdir()
    (home / name).write_text("mine")
    refuse(whole, home, f"not empty, and a backup is restored into an empty home only. Stop the application, move the"
           f" folder away (mv {home} {home}.old)", capsys)  # fmt: skip
    assert (home / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["no.tar", "."])
def test_a_backup_that_is_not_there(name: str, home: Path, tmp_path: Path, capsys: Output) -> None:
    refuse(tmp_path / name, home, "is not a file", capsys, code=2)


HOSTILE = [
    "../escaped", "index/../../escaped", "/etc/escaped", "index//twice", "./audit.jsonl", "index/./a", "index", "",
    ".env", "secrets.toml", "grades.sqlite", "index\\..\\..\\escaped", "laboratory/\0", "history.db/under",
    "home/index/a",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_not_of_a_home_is_refused(name: str, home: Path, tmp_path: Path, capsys: Output) -> None:
    refuse(write(tmp_path / "a.tar", listed(file(name))), home, "error: ", capsys)


KINDS = {
    "symbolic link": {"type": tarfile.SYMTYPE, "linkname": "/etc"},
    "hard link": {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"},
    "folder": {"type": tarfile.DIRTYPE},
    "pipe": {"type": tarfile.FIFOTYPE},
    "device": {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5},
}


@pytest.mark.parametrize("fields", KINDS.values(), ids=KINDS)
def test_what_is_not_a_plain_file_is_refused(
    fields: dict[str, Any], home: Path, tmp_path: Path, capsys: Output
) -> None:
    members = listed(file("index/a", b"", **fields), file("index/a/passwd"))
    refuse(write(tmp_path / "a.tar", members), home, "'index/a', which is not a file of its list", capsys)


def test_a_file_more_or_less_than_its_list_is_refused(home: Path, tmp_path: Path, whole: Path, capsys: Output) -> None:
    members = members_of(whole)
    more = [file("index/smuggled"), *members]
    refuse(write(tmp_path / "more.tar", more), home, "'index/smuggled', which is not a file of its list", capsys)
    refuse(write(tmp_path / "less.tar", members[1:]), home, f"The backup lacks '{members[0][0].name}'", capsys)
    twice = [members[0], *members]
    refuse(write(tmp_path / "twice.tar", twice), home, "which is not a file of its list", capsys)
    after = [*members, file("index/after")]
    refuse(write(tmp_path / "after.tar", after), home, f"its last file is not {NAME}", capsys)


@pytest.mark.parametrize("name", ["crag.db", "history.db"])
def test_a_history_of_a_later_version_is_refused(name: str, home: Path, tmp_path: Path, capsys: Output) -> None:
    fill(tmp_path / "later")
    with closing(sqlite3.connect(tmp_path / "later" / "crag.db")) as database:
        database.execute("UPDATE crag_history SET version = 99")
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    later = (tmp_path / "later" / "crag.db").read_bytes()
    refuse(write(tmp_path / "a.tar", listed(file(name, later))), home, "it has version 99", capsys)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.99, 0.9999])
def test_an_archive_that_was_cut_short_is_refused(
    share: float, home: Path, tmp_path: Path, whole: Path, capsys: Output
) -> None:
    data = whole.read_bytes().rstrip(b"\0")
    (tmp_path / "a.tar").write_bytes(data[: int(len(data) * share)])
    refuse(tmp_path / "a.tar", home, "error: ", capsys)


def test_any_byte_that_is_not_what_it_was_is_found(home: Path, tmp_path: Path, whole: Path, capsys: Output) -> None:
    data = whole.read_bytes()
    members = [member for member, _ in members_of(whole)]
    with tarfile.open(whole) as archive:
        places = [member.offset_data + member.size // 2 for member in archive if member.size][
            :: max(len(members) // 12, 1)
        ]
    for place in places:
        bent = bytearray(data)
        bent[place] ^= 1
        (tmp_path / "a.tar").write_bytes(bent)
        refuse(tmp_path / "a.tar", home, "error: ", capsys)


@pytest.mark.parametrize("data", [b"", b"\0" * 10240, b"PK\x03\x04" + b"x" * 600, b"SQLite format 3\0" * 100])
def test_something_else_is_refused(data: bytes, home: Path, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "a.tar").write_bytes(data)
    refuse(tmp_path / "a.tar", home, "not a whole backup", capsys)


def test_a_disk_without_room_is_told_of_before_anything_is_written(
    home: Path, whole: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    usage = shutil.disk_usage(home.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    refuse(whole, home, "and 0 MB are free", capsys)
