"""A history that is away, dies or is silent, while people ask: the run is shown, and what is wrong is told."""

from __future__ import annotations

import socket

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.errors import HistoryUnavailable
from tests.faults.conftest import Open, Start
from tests.faults.parts import QUESTION, at, broken_at, quoting
from tests.stand_ins.local_server import HOST
from tests.stand_ins.postgres_server import PostgresServer
from tests.ui.conftest import ask, shown


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
