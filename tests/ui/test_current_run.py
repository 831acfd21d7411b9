"""What a session keeps of the run on the Ask page: its edits, and the first answer beside a second."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from crag_core.app.background_jobs import job_of
from crag_core.base.types.edits import Edits
from tests.ui.drawn import a_run
from ui.session import app_state, current_run, fragments, run_job

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
