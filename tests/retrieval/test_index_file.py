"""Faults of the file of an index: each is told with what to do, and leaves what was there."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.fakes import WordEmbedder, embed_words, write_prose

GUIDE, OTHER = ("guide.txt", write_prose("tides")), ("other.txt", write_prose("gulls", 2_000))


@pytest.fixture
def filled(tmp_path: Path) -> PassageStore:
    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest([GUIDE])
    return store


def replace_with(folder: Path, content: bytes) -> None:
    for path in [path for path in folder.glob("crag.db*") if path.suffix != ".made"]:
        path.unlink()
    (folder / "crag.db").write_bytes(content)


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"This is a text." * 300, "not a database"), (b"", "not any more"), (b"SQLite format 3\0" + b"\0" * 5000, "")],
)
def test_a_file_that_is_no_index_is_told(tmp_path: Path, filled: PassageStore, content: bytes, why: str) -> None:
    replace_with(tmp_path, content)
    for use in (filled, PassageStore(tmp_path, WordEmbedder())):
        for work in (use.documents, lambda use=use: use.ingest([OTHER]), lambda use=use: use.search_keyword("a", 1)):
            with pytest.raises(StoreUnavailable, match=rf"crag\.db cannot be (read|written) \(.*{why}") as fault:
                work()
            assert "a backup" in fault.value.hint
    assert (tmp_path / "crag.db").read_bytes()[: len(content)] == content


def test_an_index_that_has_gone_is_told_and_not_begun_anew(tmp_path: Path, filled: PassageStore) -> None:
    filled.count()
    for gone in (("crag.db", "crag.db-wal", "crag.db-shm"), ("crag.db.made",)):
        for name in gone:
            (tmp_path / name).unlink(missing_ok=True)
        for use in (filled, PassageStore(tmp_path, WordEmbedder())):
            for work in (use.count, lambda use=use: use.ingest([OTHER]), lambda use=use: use.search_keyword("a", 1)):
                with pytest.raises(StoreUnavailable, match="was here and is not any more") as fault:
                    work()
                assert "backup" in fault.value.hint
    sqlite_file.SEEN.clear()  # as the next start of the program
    filled.ingest([GUIDE])
    assert filled.search_keyword("tides", 1)


def test_a_damaged_file_is_an_error_and_no_more(tmp_path: Path, filled: PassageStore) -> None:
    filled.ingest([OTHER])
    filled.copy_to(tmp_path / "copy")
    content = bytearray((tmp_path / "copy").read_bytes())
    for at in range(4096, len(content), 7):
        content[at] ^= 0x5A
    replace_with(tmp_path, bytes(content))
    with pytest.raises(StoreUnavailable, match="cannot be") as fault:
        PassageStore(tmp_path, WordEmbedder()).documents()
        PassageStore(tmp_path, WordEmbedder()).search_keyword("tides", 1)
    assert "put a backup back" in fault.value.hint


def test_an_index_of_a_later_version_is_refused(tmp_path: Path, filled: PassageStore) -> None:
    with closing(sqlite3.connect(tmp_path / "crag.db")) as database:
        database.execute(f"PRAGMA user_version = {sqlite_file.FORMAT + 1}")
    with pytest.raises(StoreUnavailable, match="a later version of this program made it") as fault:
        PassageStore(tmp_path, WordEmbedder()).documents()
    assert "CRAG_HOME" in fault.value.hint


def test_the_database_of_another_program_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "crag.db")) as database:
        database.execute("CREATE TABLE bookmarks (url)")
    before = (tmp_path / "crag.db").read_bytes()
    store = PassageStore(tmp_path, WordEmbedder())
    for use in (store.documents, lambda: store.ingest([GUIDE])):
        with pytest.raises(StoreUnavailable, match="database of another program") as fault:
            use()
        assert "put a backup back" in fault.value.hint
    assert (tmp_path / "crag.db").read_bytes() == before


READ_ONLY = """
import os, secrets, sys
from pathlib import Path
import filelock, numpy
from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder
if os.getuid() == 0:
    os.setgid(65534), os.setuid(65534)
store = PassageStore(Path(sys.argv[1]), WordEmbedder())
print(len(store.search_keyword("tides", 1)))
try:
    store.ingest([("x.txt", b"x")])
except StoreUnavailable as error:
    print(error)
"""


def test_a_folder_that_cannot_be_written_to_is_searched_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    store = PassageStore(folder, WordEmbedder())
    store.ingest([GUIDE])
    for _, database in store._file._idle:  # the last one to close brings all into the file
        database.close()
    store._file._idle.clear()
    (folder / "crag.db").chmod(0o444)
    for path in (folder, tmp_path, *list(tmp_path.parents)[:3]):
        path.chmod(path.stat().st_mode | 0o555)
    folder.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(folder)], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("1\n"), done.stderr
    assert "cannot be written" in done.stdout and "access" in done.stdout


def test_a_writer_that_never_ends_is_told_and_hinders_no_reader(tmp_path: Path) -> None:
    store = PassageStore(tmp_path, WordEmbedder())
    store._file._busy = 0.05
    store.ingest([GUIDE])
    with closing(sqlite3.connect(tmp_path / "crag.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert store.search_keyword("tides", 1) and store.search_dense(embed_words("tides"), 1)
        with pytest.raises(StoreUnavailable, match="locked") as fault:
            store.delete_all([store.documents()[0].id])
        assert "Another process" in fault.value.hint
    assert store.delete_all([store.documents()[0].id])


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    store = PassageStore(tmp_path / "index", WordEmbedder())
    store.ingest([GUIDE])
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "index").glob("crag.db*")}
    assert set(modes.values()) == {0o600} and (tmp_path / "index").stat().st_mode & 0o777 == 0o700


def test_chunks_of_a_version_that_recorded_no_places_are_read(tmp_path: Path) -> None:
    store = PassageStore(tmp_path, WordEmbedder())
    (done,) = store.ingest([("a.txt", write_prose("gulls", 90))])
    whole = store.read_document(done.document_id)
    with closing(sqlite3.connect(tmp_path / "crag.db")) as database:
        database.execute("ALTER TABLE passages_1 DROP COLUMN start")
    again = PassageStore(tmp_path, WordEmbedder())
    again.take_over()
    text = again.read_document(done.document_id)
    assert text is not None and whole is not None and {*text.split()} == {*whole.split()}
    assert again.surround(again.passages_of(done.document_id)[1]) is not None
