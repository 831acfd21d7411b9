"""A home goes into one file while it is in use, and comes back with everything that people would miss."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from crag_core.__main__ import main
from crag_core.storage.history import HistoryStore
from tests.conftest import REPOSITORY
from tests.deployment.homes import ask, fill, held_in, open_home
from tests.matrix import mostly
from tests.stand_ins.local_server import wait_until
from tests.storage.history_parts import large_run, whole_run

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize("place", ["pathlib.Path.mkdir", "filelock.FileLock.acquire"])
def test_a_home_that_takes_no_copy_is_named_and_not_the_target(
    place: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise OSError(30, "Read-only file system")

    fill(home)
    archive = tmp_path / "kept" / "home.zip"
    archive.parent.mkdir()
    monkeypatch.setattr(place, refuse)
    assert main(["backup", str(archive)]) == 1
    told = capsys.readouterr().err
    assert f"The home {home} takes no copy" in told and str(archive) not in told and not names_beside(archive)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("CRAG_HOME", str(folder))
    return folder


def restore_to(folder: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("CRAG_HOME", str(folder))
    return main(["restore", str(archive)])


def names_beside(archive: Path) -> set[str]:
    return {path.name for path in archive.parent.iterdir()}


@contextmanager
def worker(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.deployment.homes", *arguments]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_everything_comes_back(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    before = held_in(fill(home))
    archive = tmp_path / "home.zip"
    assert main(["backup", str(archive)]) == 0
    assert "2 documents, 2 chunks, 1 run, 1 label, 1 set, 1 preset" in capsys.readouterr().err
    assert archive.stat().st_mode & 0o077 == 0, "it holds what the documents say"
    assert restore_to(tmp_path / "again", archive, monkeypatch) == 0
    assert "2 documents, 2 chunks, 1 run, 1 label, 1 set, 1 preset, as they were at 20" in capsys.readouterr().out
    after = open_home(tmp_path / "again")
    assert held_in(after) == before and before.found and before.by_words and before.audit
    assert (tmp_path / "again" / "sample-indexed").exists(), "the sample documents must not come back"
    after.store.ingest([("more.txt", b"A lighthouse was built in 1901.")])
    ask(after, "When was the lighthouse built?")
    assert len(after.store.documents()) == 3 and after.history.count() == 2, "it can be worked with"


def test_what_is_secret_or_only_a_cache_is_not_in_it(home: Path, tmp_path: Path, capsys: Output) -> None:
    fill(home)
    (home / ".env").write_text("OPENAI_API_KEY=s3cret")
    (home / "notes.txt").write_text("mine")
    assert main(["backup", str(tmp_path / "home.zip")]) == 0
    told = capsys.readouterr().err
    assert "not in it: .env, .streamlit/secrets.toml and other files of yours" in told
    with zipfile.ZipFile(tmp_path / "home.zip") as archive:
        assert archive.namelist() == ["crag.db"]
    assert b"s3cret" not in (tmp_path / "home.zip").read_bytes()


def test_runs_that_are_kept_meanwhile_are_whole_or_absent(home: Path, tmp_path: Path) -> None:
    workbench, done = fill(home), Event()

    def keep() -> None:
        number = 0
        while not done.is_set():
            workbench.history.save(whole_run(f"run-{number}"))
            number += 1

    thread = Thread(target=keep)
    thread.start()
    try:
        for number in range(3):
            assert main(["backup", str(tmp_path / f"{number}.zip")]) == 0
    finally:
        done.set()
        thread.join()
    with zipfile.ZipFile(tmp_path / "2.zip") as archive:
        archive.extract("crag.db", tmp_path / "out")
    history = HistoryStore(tmp_path / "out" / "crag.db")
    kept = [run.id for run in history.search(limit=1000) if run.id.startswith("run-")]
    assert sorted(kept) == sorted(f"run-{number}" for number in range(len(kept))), "none is missing between others"
    assert all(history.load(run) == whole_run(run) for run in kept[:20])


@pytest.mark.parametrize("after", mostly(0.3, 0.0, 0.6))
def test_a_killed_backup_leaves_nothing_that_looks_whole(
    after: float, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    before = held_in(open_home(home))
    large = sqlite3.connect(home / "crag.db")
    large.execute("CREATE TABLE large AS SELECT zeroblob(200000000)")  # so that it takes a while
    large.commit()
    out = tmp_path / "out"
    out.mkdir()
    with worker("backup", str(out / "home.zip")) as process:
        assert wait_until(lambda: any(out.iterdir()), 60), "it has begun to write"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(after)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert all(path.name.startswith(".home.zip.unfinished-") for path in out.iterdir())
    large.execute("DROP TABLE large")
    large.close()
    for unfinished in out.iterdir():
        assert restore_to(tmp_path / "again", unfinished, monkeypatch) == 1
        assert not (tmp_path / "again").exists()
    monkeypatch.setenv("CRAG_HOME", str(home))
    assert main(["backup", str(out / "home.zip")]) == 0, "the next one cleans up and goes through"
    assert not [path for path in home.iterdir() if path.name.startswith(".backup-")]
    assert restore_to(tmp_path / "again", out / "home.zip", monkeypatch) == 0
    assert held_in(open_home(tmp_path / "again")) == before


@pytest.mark.parametrize("limit", mostly(20_000, 1_000, 60_000))
def test_a_disk_that_is_full_leaves_nothing(limit: int, home: Path, tmp_path: Path) -> None:
    """The system refuses to let any file grow beyond `limit` bytes, as it does on a full disk."""
    before = held_in(fill(home))
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-m", "tests.deployment.homes", "backup", str(out / "home.zip")]
    limited = (
        f"import resource, signal, subprocess, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        f"sys.exit(subprocess.call({command!r}, restore_signals=False))"
    )
    done = subprocess.run([sys.executable, "-c", limited], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("error: "), done.stderr
    assert "Traceback" not in done.stderr and ("written" in done.stderr or "copied" in done.stderr)
    assert list(out.iterdir()) == [] and not [path for path in home.iterdir() if path.name.startswith(".backup-")]
    assert held_in(open_home(home)) == before


def test_a_damaged_history_is_told_of_and_not_kept(home: Path, tmp_path: Path, capsys: Output) -> None:
    """In the middle of one large record, where nobody looks who counts runs."""
    workbench = fill(home)
    workbench.history.save(large_run())
    with closing(sqlite3.connect(home / "crag.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray((home / "crag.db").read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = b"\xff" * 8192
    (home / "crag.db").write_bytes(data)
    assert workbench.history.count() == 2
    assert main(["backup", str(tmp_path / "home.zip")]) == 1
    assert "crag.db cannot be copied (" in capsys.readouterr().err and names_beside(tmp_path / "x") == {"home"}
