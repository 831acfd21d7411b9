"""What becomes of a record that is carried on: the same run, or one of its own beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.storage.history import HistoryStore
from crag_core.storage.history.runs import Selection
from crag_core.trace.summary import Ending
from crag_core.trace.trace import Trace
from tests.ui.conftest import ask, press

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

CHESS = "Who won the chess championship of 1972?"


@pytest.fixture
def history(home: Path) -> HistoryStore:
    return HistoryStore(home / "crag.db")


@pytest.fixture
def waiting(start: Start) -> AppTest:
    return ask(start(CRAG_WEB="ask"), CHESS)


def refused(app: AppTest) -> Trace:
    press(app, "Do not search")
    found = app.session_state["trace"]
    assert isinstance(found, Trace) and found.answer is not None
    return found


def test_a_run_that_waited_is_one_run_in_the_history(waiting: AppTest, history: HistoryStore) -> None:
    before, first = history.count(), waiting.session_state["trace"]
    assert history.find(first.id).ending is Ending.WAITING
    done = refused(waiting)
    assert done.id == first.id and history.count() == before
    assert history.load(done.id) == done and history.find(done.id).ending is Ending.DONE
    assert [one.id for one in waiting.session_state["AskPage"].earlier].count(done.id) == 1


@pytest.mark.parametrize("whose", ["somebody else's", "from a file"])
def test_a_run_that_is_not_this_visitors_stays_as_it_is(waiting: AppTest, history: HistoryStore, whose: str) -> None:
    other = replace(waiting.session_state["trace"], id="of-another")
    if whose == "from a file":
        history.save_import(other)
    else:
        history.save(other, "eve@example.org")
    waiting.session_state["trace"] = other
    done = refused(waiting.run())
    assert done.id != other.id and history.load(other.id) == other
    assert history.find(done.id).asked_by == "" and not history.find(done.id).is_imported
    history.delete_all(Selection(ids=(other.id,)))
