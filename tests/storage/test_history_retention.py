"""Runs are kept as long as the setting says: no longer where they are old, no shorter because a clock was wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from crag_core.storage.history import HistoryStore
from crag_core.trace.feedback import Mark
from tests.storage.history_parts import route_label, run, whole_run

HOUR, DAY = 3600.0, 86400.0
START = 20_000 * DAY


class Times:
    """A clock that can be set, and the time that really goes by."""

    def __init__(self) -> None:
        self.now = START
        self.elapsed = 0.0

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.elapsed += seconds


@pytest.fixture
def times() -> Times:
    return Times()


def open_at(place: Path | str, times: Times, days: float = 0.0) -> HistoryStore:
    return HistoryStore(place, lambda: times.now, days, lambda: times.elapsed)


@pytest.fixture
def store(tmp_path: Path, times: Times) -> HistoryStore:
    return open_at(tmp_path / "history.db", times)


def kept(store: HistoryStore) -> list[str]:
    return [one.id for one in store.search(limit=1000)][::-1]


def daily(store: HistoryStore, times: Times, days: int) -> None:
    for day in range(days):
        store.save(run(f"day-{day}"))
        times.pass_by(DAY)


def test_old_runs_go_with_their_labels_and_young_ones_stay(store: HistoryStore, times: Times) -> None:
    store.save(whole_run("old"))
    store.add_label(route_label(whole_run("old"), Mark.RIGHT))
    times.pass_by(DAY)
    store.save(whole_run("young"))
    store.add_label(route_label(whole_run("young"), Mark.RIGHT))
    times.pass_by(HOUR)
    assert store.prune(1.0) == 1
    assert kept(store) == ["young"] and [one.run_id for one in store.all_labels()] == ["young"]
    assert store.prune(1.0) == 0 and store.prune(0.0) == 0


def test_a_clock_that_jumps_ahead_takes_no_young_run_with_it(store: HistoryStore, times: Times) -> None:
    daily(store, times, 10)
    times.now += 3650 * DAY
    assert store.prune(30.0) == 0
    store.save(run("future"))
    for _ in range(19):  # hours in which nobody has noticed
        assert store.prune(30.0) == 0
    times.now -= 3650 * DAY
    assert store.prune(30.0) == 0
    assert len(kept(store)) == 11
    times.pass_by(40 * DAY)
    for _ in range(60):
        store.prune(30.0)
    assert kept(store) == ["future"], "right again, it goes on as before"


def test_a_clock_that_jumps_back_deletes_nothing(store: HistoryStore, times: Times) -> None:
    daily(store, times, 10)
    times.now = 0.0
    assert store.prune(5.0) == 0
    store.save(run("long ago"))
    assert store.prune(5.0) == 0 and len(kept(store)) == 11


def test_it_is_done_at_the_first_use_and_then_when_an_hour_has_passed(tmp_path: Path, times: Times) -> None:
    file = tmp_path / "history.db"
    daily(open_at(file, times), times, 3)
    store = open_at(file, times, days=2.5)
    assert kept(store) == ["day-1", "day-2"], "looking is a use"
    times.pass_by(DAY / 2)  # of the clock; the hour is counted apart
    times.elapsed -= DAY / 2
    store.save(run("new"))
    assert kept(store) == ["day-1", "day-2", "new"]
    times.pass_by(HOUR)
    store.save(run("newer"))
    assert kept(store) == ["day-2", "new", "newer"]


def test_a_pruning_that_fails_is_no_error_of_the_run(
    tmp_path: Path, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crag_core.base.errors import HistoryUnavailable

    store = open_at(tmp_path / "history.db", times, days=1.0)

    def fail(self: HistoryStore, days: float) -> int:
        raise HistoryUnavailable("away")

    monkeypatch.setattr(HistoryStore, "prune", fail)
    store.save(run())
    assert kept(store) == ["run-1"] and store.problem == ""
