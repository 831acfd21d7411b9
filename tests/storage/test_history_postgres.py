"""The history in a PostgreSQL, against a real server: what holds in a file holds there, whoever dies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import HistoryUnavailable
from crag_core.storage.history import HistoryStore, open_history
from tests.matrix import mostly
from tests.stand_ins.local_server import HOST
from tests.stand_ins.postgres_server import USER, PostgresServer
from tests.storage import test_history_retention as retention
from tests.storage import test_history_selection as selecting
from tests.storage import test_history_store as contract
from tests.storage.history_parts import Ticking, fake_runs, golden_runs, large_run, run, whole_run
from tests.storage.history_worker import RUNS
from tests.storage.test_history_faults import USES, WRITING, refused
from tests.storage.test_history_processes import Worker, run_together

AS_IN_A_FILE: list[Callable[[HistoryStore], None]] = [
    contract.test_a_run_comes_back_as_it_was,
    contract.test_a_run_of_five_megabytes_comes_back,
    contract.test_a_run_that_has_grown_replaces_itself_and_keeps_its_place,
    contract.test_hostile_text_survives_in_the_record_and_does_no_harm_in_what_is_told,
    contract.test_a_long_question_is_told_short_and_kept_whole,
    contract.test_a_run_is_deleted_with_its_labels_and_once,
    contract.test_an_imported_run_keeps_its_id_and_says_that_it_is_one,
    contract.test_the_same_run_again_stays_the_one_that_is_there,
    contract.test_an_import_never_takes_the_place_of_another_run,
    contract.test_an_import_whose_second_id_is_taken_too_gets_a_third,
    contract.test_an_imported_run_that_grows_stays_an_imported_one,
    contract.test_a_label_comes_back_and_another_on_the_same_thing_replaces_it,
    contract.test_a_label_is_taken_back_whatever_it_said,
    contract.test_labels_are_those_of_their_run_and_all_of_all_runs,
    contract.test_a_label_on_hostile_ids_and_text_comes_back,
    contract.test_many_threads_of_one_store_lose_nothing,
    selecting.test_nothing_asked_for_is_everything_newest_first,
    selecting.test_runs_are_found_by_action_policy_and_ending,
    selecting.test_runs_are_found_by_when_they_were_kept_the_end_excluded,
    selecting.test_text_is_found_in_question_and_answer_in_every_script_without_capitals,
    selecting.test_no_sign_of_a_text_has_a_meaning_of_its_own,
    selecting.test_hostile_text_is_kept_found_and_does_no_harm,
    selecting.test_a_long_answer_is_searched_from_its_beginning,
    selecting.test_runs_are_found_by_what_was_said_of_them,
    selecting.test_each_sees_his_own_and_who_asked_first_stays_who_asked,
    selecting.test_figures_are_those_of_the_records_oldest_first_without_imports,
    selecting.test_numbers_that_no_column_holds_are_kept_in_the_record_alone,
    selecting.test_versions_and_settings_stand_beside_every_run,
    selecting.test_what_is_selected_is_deleted_with_its_labels_and_nothing_else,
    selecting.test_an_export_has_every_record_that_fits_newest_first,
    selecting.test_an_export_goes_on_where_runs_go_and_come,
]


def close(store: HistoryStore) -> None:
    assert store._database is not None
    store._database.close()


@pytest.fixture
def store(postgres_url: str) -> Iterator[HistoryStore]:
    store = HistoryStore(postgres_url, Ticking())
    yield store
    close(store)


@pytest.mark.parametrize("check", AS_IN_A_FILE, ids=[check.__name__ for check in AS_IN_A_FILE])
def test_it_does_what_a_file_does(store: HistoryStore, check: Callable[[HistoryStore], None]) -> None:
    check(store)


OF_RETENTION: list[Callable[[HistoryStore, retention.Times], None]] = [
    retention.test_old_runs_go_with_their_labels_and_young_ones_stay,
    retention.test_a_clock_that_jumps_ahead_takes_no_young_run_with_it,
    retention.test_a_clock_that_jumps_back_deletes_nothing,
    retention.test_after_a_pause_what_is_old_goes_within_some_prunings,
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("check", OF_RETENTION, ids=[check.__name__ for check in OF_RETENTION])
def test_it_prunes_as_a_file_does(postgres_url: str, check: Callable[[HistoryStore, retention.Times], None]) -> None:
    times = retention.Times()
    store = retention.open_at(postgres_url, times)
    check(store, times)
    close(store)


@pytest.mark.parametrize("make", mostly(fake_runs, golden_runs))  # a record is text there as it is in a file
def test_every_run_that_the_other_tests_make_comes_back(store: HistoryStore, make: Callable[[], list[Any]]) -> None:
    contract.test_every_run_that_the_other_tests_make_comes_back(store, make)


@pytest.mark.parametrize("id_", ["", "a" * 5000, "\x00", "\ufffd", "' OR 1=1 --", "50% %s"])
def test_any_id_finds_its_own_run_and_no_other(store: HistoryStore, id_: str) -> None:
    contract.test_any_id_finds_its_own_run_and_no_other(store, id_)


@pytest.mark.parametrize("scheme", ["postgresql://", "postgres://", "postgresql+psycopg://"])
def test_the_setting_is_the_url_as_people_write_it(postgres_url: str, tmp_path: Path, scheme: str) -> None:
    store = open_history(postgres_url.replace("postgresql://", scheme), tmp_path)
    store.save(run())
    assert store.load("run-1") == run() and list(tmp_path.iterdir()) == []
    close(store)


def test_looking_makes_no_tables(store: HistoryStore, postgres: PostgresServer, postgres_url: str) -> None:
    assert (store.load("run-1"), store.search(), store.all_labels()) == (None, (), ())
    assert postgres.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", url=postgres_url) == []


@pytest.mark.exhaustive
def test_two_processes_lose_and_tear_nothing(store: HistoryStore, postgres_url: str) -> None:
    """They make the tables at the same time too."""
    assert run_together(postgres_url, "hammer") == [{"lost": 0, "problem": ""}] * 2
    assert len(store.search(limit=1000)) == 2 * RUNS + 1 and len(store.all_labels()) == 2 * RUNS
    assert store.load("shared") == whole_run("shared")


def test_a_process_that_is_killed_in_the_middle_of_a_save_leaves_the_history_whole(
    store: HistoryStore, postgres_url: str
) -> None:
    store.save(run("mine"))
    worker = Worker(postgres_url, "save", "a")
    assert worker.read_line() == "ready\n"
    worker.let_go()
    assert worker.read_line() == "0\n"
    threading.Event().wait(0.05)  # somewhere into the next save, which takes longer than that
    worker.kill()
    assert store.load("a-0") == large_run("a-0"), "what was saved is there"
    for kept in store.search():
        assert kept.id == "mine" or store.load(kept.id) == large_run(kept.id)
    store.save(whole_run("after"))
    assert store.load("after") == whole_run("after") and store.problem == ""


def test_a_server_that_is_killed_is_told_and_used_again_when_it_is_back(postgres: PostgresServer) -> None:
    with PostgresServer() as server:
        store = HistoryStore(server.url, Ticking())
        store.save(whole_run())
        server.stop()
        for name in USES:
            told = refused(store, name)
            assert f"postgresql://{HOST}:{server.port}/postgres cannot be" in told and "lets you in" in told
        server.start()
        assert store.load("run-1") == whole_run() and store.problem == ""
        store.save(run("run-2"))
        assert len(store.search()) == 2
        server.stop()
        server.start()
        store.save(run("run-3"))
        assert len(store.search()) == 3 and store.problem == "", "nobody saw that it was away"
        close(store)


def test_a_wrong_password_is_told_and_not_shown(postgres: PostgresServer) -> None:
    store = HistoryStore(postgres.url_of("postgres", USER, "wrong-word"))
    with pytest.raises(HistoryUnavailable) as refusal:
        store.search()
    assert "wrong-word" not in str(refusal.value) + store.problem and "lets you in" in str(refusal.value)
    close(store)


def test_a_user_who_may_only_read_reads_and_is_told(
    store: HistoryStore, postgres: PostgresServer, postgres_url: str
) -> None:
    store.save(whole_run())
    postgres.execute("CREATE ROLE onlooker LOGIN PASSWORD 'words'")
    postgres.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO onlooker", url=postgres_url)
    reader = HistoryStore(postgres.url_of(postgres_url.rpartition("/")[2], "onlooker", "words"))
    try:
        for name in WRITING:
            assert "cannot be written" in refused(reader, name)
        assert reader.load("run-1") == whole_run() and reader.problem == ""
    finally:
        close(reader)
        postgres.execute("DROP OWNED BY onlooker", url=postgres_url)
        postgres.execute("DROP ROLE onlooker")
