"""Archives and folders: every file once, under a safe name, and a bad one stops no other."""

from __future__ import annotations

import io
import os
import stat
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval import upload
from crag_core.retrieval.readers import packages
from crag_core.retrieval.upload import Given, read_folder, tidy_name, unpack
from tests.retrieval.made_files import one_of_each, zip_files


def sort(files: Iterable[Given]) -> tuple[dict[str, bytes], dict[str, str]]:
    """What goes in, and why others do not."""
    found = list(files)
    taken = {
        name: given.read_bytes() if isinstance(given, Path) else given
        for name, given in found
        if not isinstance(given, DocumentRefused)
    }
    return taken, {name: str(given) for name, given in found if isinstance(given, DocumentRefused)}


def test_files_of_an_archive_with_their_folders() -> None:
    content = zip_files(
        {"a.txt": "one", "deep/er/b.md": "two", "deep/": "", "win\\dows\\c.txt": "three", "./d.csv": "x"}
    )
    assert sort(unpack("a.zip", content)) == (
        {"a.txt": b"one", "deep/er/b.md": b"two", "win/dows/c.txt": b"three", "d.csv": b"x"},
        {},
    )


def test_junk_is_left_out() -> None:
    junk = [
        "__MACOSX/._a.txt",
        ".DS_Store",
        "x/Thumbs.db",
        "~$a.docx",
        ".git/config.txt",
        "x/desktop.ini",
        ".~lock.a.odt#",
    ]
    files = zip_files({"a.txt": "one", **dict.fromkeys(junk, "x")})
    assert sort(unpack("a.zip", files)) == ({"a.txt": b"one"}, {})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../a.txt", '".."'),
        ("x/../../a.txt", '".."'),
        ("x\\..\\a.txt", '".."'),
        ("/etc/a.txt", "absolute path"),
        ("\\\\server\\a.txt", "absolute path"),
        ("C:\\a.txt", "absolute path"),
        ("c:a.txt", "absolute path"),
        ("a\nb.txt", "control characters"),
        ("a\x00.txt", "control characters"),
        ("a\u202etxt.exe.txt", "control characters"),
        ("x" * 600 + ".txt", "1 to 500"),
    ],
)
def test_names_that_escape_are_refused_alone(name: str, why: str) -> None:
    with pytest.raises(DocumentRefused, match=why):
        tidy_name(name)
    if "\x00" not in name:  # zipfile would not write it
        taken, refused = sort(unpack("a.zip", zip_files({name: "bad", "good.txt": "good"})))
        assert taken == {"good.txt": b"good"}
        ((shown, reason),) = refused.items()
        assert why in reason and not any(ord(letter) < 32 for letter in shown)


def test_names_in_utf8_code_page_437_and_composed_letters() -> None:
    content = zip_files({"Fähre.txt": "1", "Fa\u0308hre 2.txt": "2", "plain-x.txt": "3", "\u0107.txt": "4"})
    content = content.replace(b"plain-x", b"pl\x84in-x")  # ä in code page 437, and no mark of UTF-8
    assert list(sort(unpack("a.zip", content))[0]) == ["Fähre.txt", "Fähre 2.txt", "pläin-x.txt", "ć.txt"]
    unmarked = bytearray(zip_files({"Fähre.txt": "1"}))
    unmarked[unmarked.index(b"PK\x03\x04") + 7] &= ~0x08
    unmarked[unmarked.index(b"PK\x01\x02") + 9] &= ~0x08
    assert list(sort(unpack("a.zip", bytes(unmarked)))[0]) == ["Fähre.txt"]


def test_members_that_cannot_go_in_are_refused_by_name() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the name that stands there twice
        archive.writestr("secret.txt", "secret")
        archive.writestr("a.txt", "first")
        archive.writestr("a.txt", "second")
        archive.writestr("song.mp3", "la")
        archive.writestr("mail.pst", "old")
        archive.writestr("spaces.txt", " " * 5_000_000)
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("z.txt", "last")
    content = bytearray(stream.getvalue())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    place = content.index(b"z.txt") + 5
    content[place : place + 2] = b"\xff\xff"
    taken, refused = sort(unpack("a.zip", bytes(content)))
    assert taken == {"a.txt": b"first"}
    assert set(refused) == {"secret.txt", "a.txt", "song.mp3", "mail.pst", "spaces.txt", "link.txt", "z.txt"}
    for name, words in (
        ("secret.txt", "is protected with a password"),
        ("a.txt", "twice"),
        ("song.mp3", "expected a document"),
        ("mail.pst", "Convert the file"),
        ("spaces.txt", "more than 200 times"),
        ("link.txt", "is a link"),
        ("z.txt", "damaged"),
    ):
        assert refused[name].startswith(f"{name}: ") and words in refused[name]


def test_an_archive_in_an_archive_is_refused() -> None:
    taken, refused = sort(unpack("a.zip", zip_files({"x/in.ZIP": zip_files({"b.txt": "two"}), "z.txt": "z"})))
    assert taken == {"z.txt": b"z"} and "Unpack it and add the files inside" in refused["x/in.ZIP"]


def test_too_many_files_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    content = zip_files({f"{number}.txt": "x" * 10 for number in range(5)} | {"song.mp3": "x" * 1000})
    for module, name, most, why in (
        (upload, "MAX_FILES", 4, "more than 4 files"),
        (upload, "MAX_BUNDLE", 49, "more than the limit of 0.0 MB would be unpacked"),
        (packages, "MAX_MEMBERS", 5, "more than 5 files in one archive"),
    ):
        with monkeypatch.context() as patch, pytest.raises(DocumentRefused, match=f"a.zip: {why}"):
            patch.setattr(module, name, most)
            unpack("a.zip", content)
    monkeypatch.setattr(upload, "MAX_BYTES", 9)
    assert set(sort(unpack("a.zip", content))[1]) == {*(f"{number}.txt" for number in range(5)), "song.mp3"}


@pytest.mark.parametrize("content", [b"", b"no archive", one_of_each()[".rtf"]])
def test_what_is_no_archive(content: bytes) -> None:
    with pytest.raises(DocumentRefused, match=r"a.zip: expected a ZIP archive"):
        unpack("a.zip", content)


# --- folders --------------------------------------------------------------------------------------------------------


def test_files_of_a_folder_in_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a/c.md", "a/.hidden/x.txt", "Thumbs.db", "a/song.mp3"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "a" / "in.zip").write_bytes(zip_files({"d.txt": "four", "e.zip": "x"}))
    members = list(read_folder(tmp_path))
    assert members[0] == ("b.txt", tmp_path / "b.txt"), "a path, not its bytes"
    taken, refused = sort(members)
    assert list(taken) == ["b.txt", "a/c.md", "a/in.zip/d.txt"]
    assert set(refused) == {"a/song.mp3", "a/in.zip/e.zip"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    folder = tmp_path / "folder"
    (folder / "real").mkdir(parents=True)
    (folder / "real" / "a.txt").write_text("a")
    (folder / "again.txt").symlink_to(folder / "real" / "a.txt")
    (folder / "loop").symlink_to(folder)
    (folder / "out.txt").symlink_to(outside / "secret.txt")
    (folder / "away").symlink_to(outside)
    (folder / "gone.txt").symlink_to(folder / "nothing")
    taken, refused = sort(read_folder(folder))
    assert taken == {"real/a.txt": b"a"}
    assert set(refused) == {"out.txt", "away"} and all("leads out of the folder" in why for why in refused.values())


def test_devices_and_names_that_are_no_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("x")
    (tmp_path / "a\nb.txt").write_text("x")
    taken, refused = sort(read_folder(tmp_path))
    assert not taken and len(refused) == 3 and "is no file" in refused["pipe.txt"]
    assert all(name.encode() for name in refused)


def test_a_folder_with_too_much_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text("x" * 10)
    for name, most in (("MAX_FILES", 4), ("MAX_FOLDER", 49)):
        with monkeypatch.context() as patch:
            patch.setattr(upload, name, most)
            taken, refused = sort(read_folder(tmp_path))
        assert list(taken) == [f"{number}.txt" for number in range(4)]
        assert list(refused) == [tmp_path.name] and "which is the limit" in refused[tmp_path.name]
