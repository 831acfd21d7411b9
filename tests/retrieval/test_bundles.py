"""Folders: every file once, under a safe name, and a bad one stops no other."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval import upload
from crag_core.retrieval.readers import load_content
from crag_core.retrieval.upload import Given, read_folder


def sort(files: Iterable[Given]) -> tuple[dict[str, bytes], dict[str, str]]:
    """What goes in, and why others do not."""
    taken, refused = dict[str, bytes](), dict[str, str]()
    for name, given in files:
        try:
            if isinstance(given, DocumentRefused):
                raise given
            taken[name] = load_content(given, name)
        except DocumentRefused as why:
            refused[name] = str(why)
    return taken, refused


def test_files_of_a_folder_in_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a/c.md", "a/.hidden/x.txt", "Thumbs.db", "a/song.mp3"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "a" / "in.zip").write_bytes(b"PK")
    members = list(read_folder(tmp_path))
    assert members[0] == ("b.txt", tmp_path / "b.txt"), "a path, not its bytes"
    taken, refused = sort(members)
    assert list(taken) == ["b.txt", "a/c.md"]
    assert set(refused) == {"a/song.mp3", "a/in.zip"} and "Unpack it" in refused["a/in.zip"]


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
