"""A history that is away, dies or is silent, while people ask: the run is shown, and what is wrong is told."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import replace

import pytest
from sqlalchemy import event
from streamlit.testing.v1 import AppTest

from crag_core.base.errors import HistoryUnavailable
from crag_core.storage.history import store as history_store
from tests.faults.conftest import Open, Start
from tests.faults.parts import QUESTION, Wire, at, broken_at, quoting
from tests.stand_ins.local_server import HOST
from tests.stand_ins.postgres_server import PostgresServer
from tests.ui.conftest import ask, shown

CONNECTS_A_SAVE = 2
"""Once to see to the tables, once to write; a driver may knock twice each time."""


def refused_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answered(app: AppTest) -> bool:
    """The run stands on the page, whatever became of keeping it."""
    return not app.exception and "14 pounds" in shown(app)


def test_away_from_the_start_the_answer_is_shown_and_the_page_says_that_it_is_not_kept(start: Start) -> None:
    place = f"postgresql://{HOST}:{refused_port()}/runs"
    app = ask(start(CRAG_HISTORY=f"{place.replace('//', '//me:s3cret@')}"), QUESTION)
    assert answered(app)
    told = shown(app.run())
    assert f"The history {place} cannot be written" in told and "s3cret" not in told
    assert "Check that the database runs and lets you in." in told


def test_killed_in_mid_run_and_back_the_next_run_is_kept(open_bench: Open) -> None:
    with PostgresServer() as postgres:
        workbench = open_bench(history=postgres.url)
        pipeline = workbench.engine(quoting(workbench))
        first = pipeline.run(QUESTION)
        workbench.history.save(first)
        lost = pipeline.run(QUESTION, at("grade", postgres.stop))
        assert broken_at(lost) == "" and lost.answer is not None, "a run does not need it"
        with pytest.raises(HistoryUnavailable, match="cannot be written"):
            workbench.history.save(lost)
        postgres.start()
        workbench.history.save(lost)
        assert {kept.id for kept in workbench.history.search()} == {first.id, lost.id}
        assert workbench.history.problem == ""


def test_a_server_that_accepts_and_is_silent_is_waited_for_once_a_run(
    open_bench: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_store, "PART", replace(history_store.PART, reply_s=2.0))
    with Wire() as silent:
        workbench = open_bench(history=f"postgresql://me@{HOST}:{silent.port}/runs")
        trace = workbench.engine(quoting(workbench)).run(QUESTION)
        with pytest.raises(HistoryUnavailable, match="cannot be written"):
            workbench.history.save(trace)
        assert silent.accepted <= 2 * CONNECTS_A_SAVE


@pytest.mark.parametrize("word", ["INSERT", "COMMIT"])
def test_a_server_that_freezes_in_the_middle_of_keeping_has_kept_all_or_nothing(
    open_bench: Open, postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """Frozen when that statement is about to be sent, over the line that was in use."""
    monkeypatch.setattr(history_store, "PART", replace(history_store.PART, reply_s=0.5))
    workbench = open_bench(history=postgres_url)
    trace = workbench.engine(quoting(workbench)).run(QUESTION)
    workbench.history.count()
    workbench.history.save(replace(trace, id="before"))
    with ExitStack() as frozen:

        def freeze(*told: object) -> None:
            if word == "COMMIT" or word in str(told[2]):
                seen.append(word)
                if len(seen) == 1:
                    frozen.enter_context(postgres.frozen())

        seen: list[str] = []
        assert workbench.history._database is not None
        name = "commit" if word == "COMMIT" else "before_cursor_execute"
        event.listen(workbench.history._database._engine(True), name, freeze)
        with pytest.raises(HistoryUnavailable, match=r"no reply within 0\.5 s"):
            workbench.history.save(trace)
    workbench.history.save(trace)
    assert {kept.id for kept in workbench.history.search()} == {"before", trace.id}
