"""The cache in a file: time, size, threads, and files and folders that are not as they should be."""

from __future__ import annotations

import json
import logging
import resource
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from crag_core.base.types.grades import Grade
from crag_core.evaluators.cached import CachedEvaluator
from crag_core.storage import sqlite_file
from crag_core.storage.cache import DiskCache, disk
from tests.storage.cache_parts import IDENTITY, CountingEvaluator, HandClock, ask, grade, key, passages

HOUR = 3600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "grades.sqlite"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def cache(path: Path, clock: HandClock) -> DiskCache:
    return DiskCache(path, HOUR, clock=clock)


def change(path: Path, statement: str, *values: object) -> None:
    """Behind the cache's back."""
    database = sqlite3.connect(path)
    with database:
        database.execute(statement, values)
    database.close()


def count_rows(path: Path) -> int:
    database = sqlite3.connect(path)
    (count,) = database.execute("SELECT count(*) FROM grades").fetchone()
    database.close()
    return int(count)


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[object]:
    """Grows by one with each call."""
    calls: list[object] = []
    original = getattr(owner, name)

    def counted(self: object, *values: object) -> object:
        calls.append(values)
        return original(self, *values)

    monkeypatch.setattr(owner, name, counted)
    return calls


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_put_comes_back_whole(cache: DiskCache) -> None:
    kept = {key(1): grade(0.0, "早上九點 \U0001f600 \ufffd 'quoted' \x00"), key(2): grade(1.0)}
    cache.put_many(kept)
    assert cache.get_many([key(2), key(3), key(1), key(1)]) == kept
    assert cache.problem == ""


def test_constructing_touches_no_disk_and_nothing_asked_touches_none_either(cache: DiskCache, path: Path) -> None:
    assert cache.get_many([]) == {}
    cache.put_many({})
    cache.close()
    assert not path.parent.exists()


def test_another_cache_on_the_same_file_reads_it(cache: DiskCache, path: Path, clock: HandClock) -> None:
    cache.put_many({key(1): grade()})
    cache.close()
    assert DiskCache(path, HOUR, clock=clock).get_many([key(1)]) == {key(1): grade()}


def test_newer_grade_takes_the_place_of_the_older(cache: DiskCache, path: Path) -> None:
    cache.put_many({key(1): grade(0.1)})
    cache.put_many({key(1): grade(0.9)})
    assert cache.get_many([key(1)])[key(1)].score == 0.9
    assert count_rows(path) == 1


# --- time and size --------------------------------------------------------------------------------------------------


def test_grades_expire_and_leave_the_disk_with_the_next_write(cache: DiskCache, path: Path, clock: HandClock) -> None:
    cache.put_many({key(1): grade()})
    clock.now += HOUR - 1
    assert cache.get_many([key(1)]), "however often it was read in between"
    clock.now += 1
    assert cache.get_many([key(1)]) == {}
    cache.put_many({key(2): grade()})
    assert count_rows(path) == 1


def test_clock_set_back_makes_nothing_immortal(cache: DiskCache, path: Path, clock: HandClock) -> None:
    cache.put_many({key(1): grade()})
    clock.now -= 24 * HOUR
    assert cache.get_many([key(1)]) == {}
    cache.put_many({key(2): grade()})
    assert count_rows(path) == 1
    assert cache.get_many([key(2)])


def test_clock_set_back_by_a_second_loses_nothing(cache: DiskCache, clock: HandClock) -> None:
    cache.put_many({key(1): grade()})
    clock.now -= 1
    cache.put_many({key(2): grade()})
    assert set(cache.get_many([key(1), key(2)])) == {key(1), key(2)}


def test_number_of_grades_is_bounded_and_the_oldest_go(path: Path, clock: HandClock) -> None:
    cache = DiskCache(path, HOUR, limit=10, clock=clock)
    for number in range(25):
        cache.put_many({key(number): grade()})
    cache.put_many({key(16): grade()})
    assert count_rows(path) <= 10
    kept = cache.get_many([key(number) for number in range(25)])
    assert set(kept) == {key(16), *(key(number) for number in range(17, 25))}


def test_more_at_once_than_the_limit_keeps_the_last(path: Path, clock: HandClock) -> None:
    cache = DiskCache(path, HOUR, limit=10, clock=clock)
    cache.put_many({key(number): grade() for number in range(1000)})
    assert set(cache.get_many([key(n) for n in range(1000)])) == {key(n) for n in range(990, 1000)}


# --- what others wrote ----------------------------------------------------------------------------------------------

POISON = {
    "score out of range": json.dumps({"passage_id": "p1", "score": 7}),
    "score is text": json.dumps({"passage_id": "p1", "score": "0.7"}),
    "score is true": json.dumps({"passage_id": "p1", "score": True}),
    "not a number": '{"passage_id": "p1", "score": NaN}',
    "beyond all numbers": '{"passage_id": "p1", "score": 1e999}',
    "no score": json.dumps({"passage_id": "p1", "score": None, "cause": "unreadable"}),
    "unknown field": json.dumps({"passage_id": "p1", "score": 0.7, "admin": True}),
    "field missing": json.dumps({"score": 0.7}),
    "list": "[]",
    "null": "null",
    "torn": '{"passage_id": "p1", "sco',
    "empty": "",
    "not text": b"\xff\xfe\x00{",
    "pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00",
    "nested without end": "[" * 100_000,
    "number without end": '{"passage_id": "p1", "score": ' + "9" * 10_000 + "}",
}


@pytest.mark.parametrize("value", POISON.values(), ids=POISON)
def test_poisoned_value_is_absent_and_spoils_no_other(cache: DiskCache, path: Path, value: str | bytes) -> None:
    cache.put_many({key(1): grade(), key(2): grade()})
    change(path, "UPDATE grades SET value = ? WHERE key = ?", value, key(1))
    assert cache.get_many([key(1), key(2)]) == {key(2): grade()}
    cache.put_many({key(1): grade(0.7)})
    assert cache.get_many([key(1)])[key(1)].score == 0.7
    assert cache.problem == ""


def test_grade_of_the_version_before_is_still_read(cache: DiskCache, path: Path) -> None:
    cache.put_many({key(1): grade()})
    change(path, "UPDATE grades SET value = json_set(CAST(value AS TEXT), '$.second', NULL)")
    assert cache.get_many([key(1)]) == {key(1): grade()}


def test_value_that_claims_to_be_text_spoils_no_other(cache: DiskCache, path: Path) -> None:
    cache.put_many({key(1): grade(), key(2): grade()})
    change(path, "UPDATE grades SET value = CAST(? AS TEXT) WHERE key = ?", b"\xff\xfe{", key(1))
    assert cache.get_many([key(1), key(2)]) == {key(2): grade()}
    assert cache.problem == ""


@pytest.mark.parametrize("kept_at", ["now", b"now", 1e300, -1e300], ids=repr)
def test_time_that_is_none_counts_as_expired(cache: DiskCache, path: Path, kept_at: object) -> None:
    cache.put_many({key(1): grade()})
    change(path, "UPDATE grades SET kept_at = ?", kept_at)
    assert cache.get_many([key(1)]) == {}
    cache.put_many({key(2): grade()})
    assert count_rows(path) == 1


# --- damaged files --------------------------------------------------------------------------------------------------


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "garbage":
        path.write_bytes(b"this was never a database " * 400)
    elif how == "cut short":
        path.write_bytes(content[: len(content) // 2])
    elif how == "pages overwritten":
        path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


@pytest.mark.parametrize("how", ["garbage", "cut short", "pages overwritten"])
@pytest.mark.parametrize("first", ["get", "put"])
def test_damaged_file_is_moved_aside_and_a_new_one_begun(cache: DiskCache, path: Path, how: str, first: str) -> None:
    cache.put_many({key(number): grade() for number in range(200)})
    damage(path, how)
    if first == "get":
        assert cache.get_many([key(150)]) == {}
    cache.put_many({key(7): grade(0.7)})
    assert cache.get_many([key(7), key(8)]) == {key(7): grade(0.7)}
    (aside,) = path.parent.glob("grades.sqlite.broken-*")
    assert "damaged" in cache.problem and str(aside) in cache.problem, "still told when all works again"


def test_empty_file_is_a_new_database(cache: DiskCache, path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    cache.put_many({key(1): grade()})
    assert cache.get_many([key(1)]) and cache.problem == ""


def test_log_of_a_damaged_file_goes_with_it(cache: DiskCache, path: Path) -> None:
    """SQLite would play it back into the new file."""
    cache.put_many({key(1): grade()})
    reader = sqlite3.connect(path)  # as long as it is open the log stays where it is
    reader.execute("SELECT count(*) FROM grades").fetchone()
    cache.put_many({key(2): grade()})
    assert Path(f"{path}-wal").stat().st_size
    damage(path, "garbage")
    assert cache.get_many([key(1), key(2)]) == {}
    assert len(list(path.parent.glob("*.broken-*-wal"))) == 1
    reader.close()
    cache.put_many({key(3): grade()})
    assert set(cache.get_many([key(1), key(2), key(3)])) == {key(3)}


def test_a_cache_that_saw_the_damage_late_moves_nothing_new(
    path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, late = DiskCache(path, HOUR, clock=clock), DiskCache(path, HOUR, clock=clock)
    first.put_many({key(1): grade()})
    damage(path, "garbage")
    replace = DiskCache._replace_damaged

    def be_overtaken(self: DiskCache, seen: int | None) -> None:
        monkeypatch.undo()
        first.put_many({key(2): grade()})
        replace(self, seen)

    monkeypatch.setattr(DiskCache, "_replace_damaged", be_overtaken)
    assert late.get_many([key(2)]) == {key(2): grade()}
    assert len(list(path.parent.glob("*.broken-*"))) == 1
    assert "damaged" in first.problem and late.problem == ""


def test_file_deleted_by_hand_is_made_again(cache: DiskCache, path: Path) -> None:
    cache.put_many({key(1): grade()})
    for left in path.parent.iterdir():
        left.unlink()
    assert cache.get_many([key(1)]) == {}
    cache.put_many({key(2): grade()})
    assert cache.get_many([key(2)]) and cache.problem == ""


def test_file_that_another_process_moves_in_mid_work_is_no_problem(
    cache: DiskCache, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put_many({key(1): grade()})
    path.unlink()
    answers = iter([True])  # it was there a moment ago
    there = sqlite_file.is_there
    monkeypatch.setattr(sqlite_file, "is_there", lambda path: next(answers, None) or there(path))
    cache.put_many({key(2): grade()})
    assert cache.get_many([key(2)]) and cache.problem == ""


def test_file_half_made_by_a_process_that_was_killed_is_made_again(cache: DiskCache, path: Path) -> None:
    path.parent.mkdir()
    Path(f"{path}.new").write_bytes(b"half a database")
    cache.put_many({key(1): grade()})
    assert cache.get_many([key(1)]) and cache.problem == ""


# --- places that cannot be written ----------------------------------------------------------------------------------


def test_folder_that_cannot_be_made_costs_only_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = DiskCache(tmp_path / "file" / "grades.sqlite", HOUR)
    inner = CountingEvaluator()
    evaluator = CachedEvaluator(inner, cache, IDENTITY)
    for _ in range(2):
        assert [one.score for one in ask(evaluator, *passages("p1", "p2"))] == [0.8, 0.8]
    assert len(inner.asked) == 2
    assert str(tmp_path / "file") in cache.problem and "written to" in cache.problem


def test_folder_in_the_place_of_the_file(cache: DiskCache, path: Path) -> None:
    path.mkdir(parents=True)
    cache.put_many({key(1): grade()})
    assert cache.get_many([key(1)]) == {}
    assert "unable to open" in cache.problem
    assert names_in(path.parent) == [path.name], "nothing of the user's was moved"


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """A disk that is full, as far as this process can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_loses_nothing_and_is_told_until_there_is_room(cache: DiskCache) -> None:
    cache.put_many({key(1): grade()})
    with files_no_longer_than(100_000):
        cache.put_many({key(number): grade(0.5, "x" * 1000) for number in range(10, 500)})
        assert "cannot be written" in cache.problem
        assert cache.get_many([key(1), key(10)]) == {key(1): grade()}
        assert "cannot be written" in cache.problem, "a read that works says nothing of writing"
    cache.put_many({key(2): grade()})
    assert cache.problem == ""
    assert set(cache.get_many([key(1), key(2)])) == {key(1), key(2)}


def test_lock_that_is_never_let_go_is_named(cache: DiskCache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put_many({key(1): grade()})
    monkeypatch.setattr(disk, "BUSY_S", 0.05)
    tries = count_calls(monkeypatch, DiskCache, "_run")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    cache.put_many({key(2): grade()})
    assert "locked" in cache.problem and "other process" in cache.problem
    assert len(tries) == 1, "waited for once"
    assert cache.get_many([key(1)]), "reading needs no lock"
    other.close()
    cache.put_many({key(2): grade()})
    assert cache.problem == ""


def test_each_change_is_logged_once(cache: DiskCache, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "crag.cache")
    path.mkdir(parents=True)
    for _ in range(3):
        cache.put_many({key(1): grade()})
        cache.get_many([key(1)])
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"], "writing and reading, once each"
    caplog.clear()
    path.rmdir()
    for _ in range(3):
        cache.put_many({key(1): grade()})
        cache.get_many([key(1)])
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    assert {record.name for record in caplog.records} == {"crag.cache"}


# --- threads --------------------------------------------------------------------------------------------------------


def test_many_threads_lose_nothing(path: Path) -> None:
    cache = DiskCache(path, HOUR)

    def put_and_get(number: int) -> Grade:
        cache.put_many({key(number): grade(reason=str(number))})
        return cache.get_many([key(number)])[key(number)]

    with ThreadPoolExecutor(8) as threads:
        grades = list(threads.map(put_and_get, range(120)))
    assert [one.reason for one in grades] == [str(number) for number in range(120)]
    assert len(cache.get_many([key(number) for number in range(120)])) == 120
    assert cache.problem == ""
