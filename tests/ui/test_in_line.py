"""Runs that wait in line, and calls that wait for the model: what the page says of it, and what stopping does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from crag_core.app import model_servers
from crag_core.pipeline.run_queue import RunQueue, Ticket
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.ui.conftest import Start, job_named, settle, shown
from ui.run import job_progress
from ui.session import run_job, startup

QUESTION = "What does a yacht of nine metres pay for a night?"


def run_queue() -> RunQueue:
    return startup.shared_workbench().run_queue


@pytest.fixture
def others() -> Iterator[Callable[[int], list[Ticket]]]:
    """So many runs of others, each before what is asked from then on."""
    with ExitStack() as stack:

        def join(count: int) -> list[Ticket]:
            tickets = [run_queue().join() for _ in range(count)]
            for ticket in tickets:
                stack.callback(ticket.leave)
            return tickets

        yield join


def begin(app: AppTest, question: str = QUESTION) -> AppTest:
    """Ask, and do not wait for the end."""
    app.text_input(key="ask_question").set_value(question)
    next(button for button in app.button if button.label == "Ask").click()
    return app.run()


def looks_every(app: AppTest, seconds: str) -> bool:
    """Whether a part of the page does, by the mark of its ticks."""
    return any(f'data-every="{seconds}"' in one.proto.body for one in app.get("html"))


def test_page_tells_how_many_runs_are_before_and_goes_on_when_it_is_its_turn(
    start: Start, others: Callable[[int], list[Ticket]]
) -> None:
    app = start(CRAG_RUNS_AT_ONCE="1")
    tickets = others(3)
    begin(app)
    assert "In line: 2 runs before yours" in shown(app)
    assert looks_every(app, "0.9"), "who waits behind others looks less often"
    tickets[0].leave()
    assert "In line: 1 run before yours" in shown(app.run())
    assert looks_every(app, "0.6")
    tickets[1].leave()
    assert "In line: yours is next" in shown(app.run())
    tickets[2].leave()
    settle(app)
    assert "In line" not in shown(app) and app.session_state["trace"].answer is not None
    assert (run_queue().active, run_queue().waiting) == (0, 0)


def test_a_look_at_a_run_whose_turn_has_come_draws_the_page_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """From then on it is looked at often; one that had nobody before it is, already."""

    class Anew(Exception):
        pass

    def draw_anew() -> None:
        raise Anew

    started = SimpleNamespace(is_running=True, ticket=SimpleNamespace(before=None), progress=None)
    monkeypatch.setattr(run_job, "job", lambda: started)
    monkeypatch.setattr(st, "rerun", draw_anew)
    with pytest.raises(Anew):
        job_progress._draw_running(has_others_before=True)
    with pytest.raises(AttributeError):  # it goes on to draw the progress, of which there is none
        job_progress._draw_running(has_others_before=False)


def test_stop_takes_a_run_out_of_the_line_and_its_record_says_so(
    start: Start, others: Callable[[int], list[Ticket]]
) -> None:
    app = start(CRAG_RUNS_AT_ONCE="1")
    others(2)
    begin(app)
    job = job_named(app, "run")
    next(button for button in app.button if button.label == "Stop").click().run()
    job.wait()
    assert run_queue().waiting == 1, "of the other one"
    assert "Stopped at “retrieve”" in shown(app.run())
    kept = startup.shared_workbench().history.load(job.progress.trace.id)
    assert kept is not None and kept.failure is not None


def test_a_model_that_serves_others_is_told_of(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_servers, "LONG_WAIT", 0.0)
    with OllamaServer(ScriptedModel(judging())) as server:
        server.faults.delay_s = 60.0
        app = start(OLLAMA_HOST=server.url, CRAG_MODEL=f"ollama/{MODEL}", CRAG_MODEL_CALLS="1")
        begin(app)
        job = job_named(app, "run")
        assert wait_until(lambda: server.active == 1, 60)
        assert f"{MODEL} has not begun to answer: it loads, or serves others" in shown(app.run())
        job.stop()
        settle(app)
