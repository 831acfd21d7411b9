"""What a session keeps of the run on the Ask page: its edits, and the first answer beside a second."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from crag_core.app.background_jobs import job_of
from crag_core.base.types.edits import Edits
from tests import builders
from tests.ui.drawn import a_run
from ui.session import app_state, background, current_run, fragments, keys, run_job

RUN = a_run(2)[0]


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    """One outside a page, that has the run on it."""
    for name, value in {"session_state": {}, "query_params": {}, "rerun": lambda what: None}.items():
        monkeypatch.setattr(st, name, value)
    monkeypatch.setattr(fragments, "drawn", set)
    meter = SimpleNamespace(measure=lambda question, passages: ())
    monkeypatch.setattr(app_state, "workbench", lambda: SimpleNamespace(meter=meter))
    current_run.show(RUN)


def test_a_chunk_is_dropped_or_pinned_but_not_both() -> None:
    steps: list[tuple[Any, Edits]] = [
        ("dropped", Edits(dropped=("p1",))),
        ("pinned", Edits(pinned=("p1",))),
        ("dropped", Edits(dropped=("p1",))),
        ("dropped", Edits()),
    ]
    for where, expected in steps:
        current_run.toggle("p1", where)
        assert current_run.edits() == expected


@pytest.mark.parametrize(("id_", "edits"), [(RUN.id, Edits(dropped=("p1",))), ("another", Edits())])
def test_edits_stay_where_a_run_adds_to_the_record_on_the_page(id_: str, edits: Edits) -> None:
    current_run.toggle("p1", "dropped")
    done = replace(RUN, id=id_, created="later")
    job = job_of(lambda run: done, done)
    job.start()
    job.wait()
    run_job.finish(job)
    assert current_run.trace() == done and current_run.edits() == edits


def test_the_first_answer_stands_beside_a_second_until_it_is_hidden() -> None:
    current_run.set_baseline()
    assert current_run.first_beside() is None, "it is the one on the page"
    current_run.show(replace(RUN, id="second"))
    assert current_run.first_beside() is RUN
    current_run.hide_first()
    assert current_run.first_beside() is None
    current_run.set_baseline()
    assert current_run.first_beside() is RUN, "of a third answer too it is the first"


# --- a script that Streamlit breaks off at any touch of the session's state ------------------------------------------


class BrokenOff(BaseException):
    """As Streamlit's own, which no `except Exception` catches."""


class Touchy(dict[str, Any]):
    """Session state that breaks the script off at its n-th touch, once."""

    def __init__(self, n: int, **kept: Any) -> None:
        super().__init__(kept)
        self.left = n

    def _touch(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise BrokenOff

    def __setitem__(self, key: str, value: Any) -> None:
        self._touch()
        super().__setitem__(key, value)

    def get(self, key: str, default: Any = None) -> Any:
        self._touch()
        return super().get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        self._touch()
        return super().setdefault(key, default)


@pytest.mark.parametrize("n", range(1, 7))
def test_run_whose_end_is_broken_off_is_shown_by_the_next_script(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = builders.trace(builders.policy("paper"))
    job = job_of(lambda run: trace, trace)
    job.start()
    job.wait()
    session = Touchy(n, jobs={"run": job})
    fake = SimpleNamespace(session_state=session, query_params={})
    for module in (app_state, background, current_run, keys):
        monkeypatch.setattr(module, "st", fake)
    for _ in range(2):
        with suppress(BrokenOff):
            if (left := run_job.job()) is not None:
                run_job.finish(left)
    assert session["jobs"] == {} and session["trace"] is trace
    assert session.left <= 0, "fewer touches than this case supposes"
