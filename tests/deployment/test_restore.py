"""What is not a whole backup of ours is refused, and leaves nothing; nor does a restore ever replace anything."""

from __future__ import annotations

import io
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from crag_core.__main__ import main
from tests.deployment.homes import fill, open_home

Output = pytest.CaptureFixture[str]


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
        assert main(["backup", str(folder / "home.zip")]) == 0
    return folder / "home.zip"


def write(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], packed: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", packed) as archive:
        for member, data in members:
            archive.writestr(member, data)
    return path


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


@pytest.mark.parametrize("name", ["no.zip", "."])
def test_a_backup_that_is_not_there(name: str, home: Path, tmp_path: Path, capsys: Output) -> None:
    refuse(tmp_path / name, home, "is not a file", capsys, code=2)


HOSTILE = ["../escaped", "/etc/escaped", "crag.db/", "./crag.db", "sample-indexed", ".env", "index\\..\\crag.db"]


@pytest.mark.parametrize("name", HOSTILE)
def test_another_file_than_that_of_a_home_is_refused(
    name: str, home: Path, tmp_path: Path, whole: Path, capsys: Output
) -> None:
    data = zipfile.ZipFile(whole).read("crag.db")
    link = zipfile.ZipInfo(name)
    link.external_attr = 0o120777 << 16
    for number, members in enumerate([[(name, b"x")], [("crag.db", data), (name, b"x")], [(link, b"/etc/passwd")]]):
        told = "expected crag.db alone in it"
        refuse(write(tmp_path / f"{number}.zip", *members), home, told, capsys)  # type: ignore[arg-type]


def test_what_unpacks_to_more_than_it_has_is_refused(home: Path, tmp_path: Path, capsys: Output) -> None:
    packed = write(tmp_path / "a.zip", ("crag.db", bytes(10**7)), packed=zipfile.ZIP_DEFLATED)
    refuse(packed, home, "expected crag.db alone in it", capsys)


def test_a_file_of_a_later_version_or_of_another_program_is_refused(home: Path, tmp_path: Path, capsys: Output) -> None:
    fill(tmp_path / "later")
    with closing(sqlite3.connect(tmp_path / "later" / "crag.db")) as database:
        database.execute("UPDATE crag_history SET version = 99")
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    later = (tmp_path / "later" / "crag.db").read_bytes()
    refuse(write(tmp_path / "a.zip", ("crag.db", later)), home, "it has version 99", capsys)
    refuse(write(tmp_path / "b.zip", ("crag.db", b"x" * 5000)), home, "file is not a database", capsys)


def test_what_an_earlier_version_made_is_told_how_to_unpack(home: Path, tmp_path: Path, capsys: Output) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("crag.db"), io.BytesIO())
    refuse(tmp_path / "a.tar", home, "unpack that into an empty CRAG_HOME: tar -xf FILE -C FOLDER.", capsys)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.99, 0.9999])
def test_an_archive_that_was_cut_short_is_refused(
    share: float, home: Path, tmp_path: Path, whole: Path, capsys: Output
) -> None:
    data = whole.read_bytes()
    (tmp_path / "a.zip").write_bytes(data[: int(len(data) * share)])
    refuse(tmp_path / "a.zip", home, "error: ", capsys)


def test_any_byte_that_is_not_what_it_was_is_found(home: Path, tmp_path: Path, whole: Path, capsys: Output) -> None:
    data = whole.read_bytes()
    for place in range(1000, len(data) - 200, len(data) // 12):
        bent = bytearray(data)
        bent[place] ^= 1
        (tmp_path / "a.zip").write_bytes(bent)
        refuse(tmp_path / "a.zip", home, "error: ", capsys)


@pytest.mark.parametrize("data", [b"", b"\0" * 10240, b"PK\x05\x06" + b"x" * 600, b"SQLite format 3\0" * 100])
def test_something_else_is_refused(data: bytes, home: Path, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    refuse(tmp_path / "a.zip", home, "not a whole backup", capsys)


def test_a_disk_without_room_is_told_of_before_anything_is_written(
    home: Path, whole: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    usage = shutil.disk_usage(home.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    refuse(whole, home, "and 0 MB are free", capsys)
