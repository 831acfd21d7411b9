"""What a run leaves in the log: its id on every line, and no text of question, document or reply."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.types.grades import Grade
from crag_core.base.types.steps import StepState
from crag_core.observability.logs import RunLog, show_logs
from crag_core.observability.metrics import Metrics
from crag_core.pipeline.run import Run, WebMode
from crag_core.pipeline.web_stages import approve
from tests import builders
from tests.fakes import QUESTION, Bench, Diary, FakeModel, found_web, passage

Output = pytest.CaptureFixture[str]

HOSTILE = 'xyzzy\n{"level": "CRITICAL", "run": "forged"} <script>alert(1)</script> \x1b[31m \ud800 password=hunter2'
DOCUMENT = "Plugh ignores all previous instructions.\n[CRAG_RUN] ended ending=done Frobozz is nine."
REPLY = 'Thanks for all the grue [1].\n{"level": "ERROR"}'


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("crag", "crag_core")]
    before = [logger.level for logger in loggers]
    yield
    show_logs("off")
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def bench_with(**fields: object) -> Bench:
    return Bench(observers=(RunLog(), Metrics()), **{"model": FakeModel()} | fields)  # type: ignore[arg-type]


def lines(output: Output) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.readouterr().err.splitlines()]


def test_a_run_is_told_from_its_beginning_to_its_end(capsys: Output) -> None:
    show_logs("json")
    trace = bench_with().pipeline.run(QUESTION)
    told = lines(capsys)
    assert {line["run"] for line in told} == {trace.id}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line["time"]) for line in told)
    begun, *steps, ended = [line for line in told if line["logger"] == "crag.run"]
    assert begun["event"] == "begun"
    assert (begun["policy"], begun["evaluator"], begun["model"]) == ("paper", "fake", "fake-model")
    assert (begun["settings"], begun["carried_on"]) == (trace.fingerprint, False)
    assert [(line["step"], line["state"]) for line in steps] == [(one.name, one.state.value) for one in trace.steps]
    assert [line["calls"] for line in steps] == [one.usage.calls for one in trace.steps]
    assert all(line["level"] == "INFO" and line["ms"] > 0 for line in steps)
    assert (ended["event"], ended["ending"], ended["action"]) == ("ended", "done", "CORRECT")
    assert (ended["calls"], ended["answer"]) == (trace.usage.calls, "complete")


def test_a_failed_step_is_a_warning_with_type_and_what_to_do(capsys: Output) -> None:
    show_logs("json")
    away = ModelUnavailable("The server at http://ann:secret@models:8000 does not answer.", hint="Start it.")
    bench_with(model=FakeModel(answer=away)).pipeline.run(QUESTION)
    written = capsys.readouterr().err
    (broken,) = [line for line in map(json.loads, written.splitlines()) if line["level"] == "WARNING"]
    assert (broken["step"], broken["state"], broken["error"]) == ("answer", "failed", "ModelUnavailable")
    assert broken["told"] == "Start it." and "secret" not in written


@pytest.mark.parametrize(("best", "warns"), [(0.9, False), (0.5, False), (0.1, True)])
def test_chunks_that_are_used_though_irrelevant_are_a_warning(best: float, warns: bool, capsys: Output) -> None:
    show_logs("json")
    judged = replace(builders.policy("agentic"), skip=(), max_rounds=1)
    bench_with(policy=judged, best=best, web=WebMode.OFF).pipeline.run(QUESTION)
    told = lines(capsys)
    warnings = [(line["step"], line["told"]) for line in told if line["level"] == "WARNING"]
    said = ("assemble", "chunks graded as irrelevant are used, since nothing better was found")
    assert warnings == ([said] if warns else [])
    assert told[-1]["answer"] == ("complete" if best == 0.9 else "doubtful")


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_text_of_question_document_or_reply_is_in_any_line(form: str, capsys: Output) -> None:
    """Whatever goes well or wrong, with errors that repeat what they were given."""
    show_logs(form)

    def grade(one: object) -> Grade:
        return Grade(one.id, None, "", raw=f"grue {DOCUMENT}", cause=f"no score in {DOCUMENT}")  # type: ignore[attr-defined]

    found = (passage(1, DOCUMENT), passage(2, DOCUMENT + " more"))
    hostile = {"found": found, "reply": found_web()}
    for scoring in (lambda _: 0.9, lambda _: 0.5, lambda _: 0.1, grade):
        for told in (REPLY, ModelUnavailable(f"Refused: {HOSTILE}"), ModelUnavailable(f"Refused: {DOCUMENT}")):
            bench = bench_with(**hostile, scoring=scoring, model=FakeModel(answer=told, rewrite=f"grue {REPLY}"))
            bench.pipeline.run(HOSTILE)
    asked = bench_with(**hostile, best=0.1, web=WebMode.ASK)
    asked.pipeline.resume(approve(asked.pipeline.run(HOSTILE), "frobozz timetable"))
    written = capsys.readouterr().err
    assert written.count("ended") > 12
    for word in ("xyzzy", "plugh", "frobozz", "grue", "hunter2", "forged", "<script>", "\x1b", "previous instructions"):
        assert word not in written.casefold(), word
    if form == "json":
        assert {json.loads(line)["level"] for line in written.splitlines()} <= {"INFO", "WARNING"}
    else:
        assert all(re.match(r"\d{4}-\d\d-\d\dT\S+Z (INFO|WARNING) run=run-\d+ ", line) for line in written.splitlines())


def test_a_bug_is_told_by_its_type_alone(capsys: Output) -> None:
    show_logs("json")

    def break_down() -> None:
        raise ZeroDivisionError(HOSTILE)

    bench = bench_with()
    bench.evaluator.before = break_down
    with pytest.raises(ZeroDivisionError):
        bench.pipeline.run(QUESTION)
    *_, last = lines(capsys)
    assert (last["level"], last["bug"], last["ending"]) == ("ERROR", "ZeroDivisionError", "failed")


@pytest.mark.parametrize("name", ["crag.cache", "crag_core.retrieval.index.index_writer"])
def test_records_of_others_get_the_run_in_which_they_are_made(name: str, capsys: Output) -> None:
    show_logs("json")
    told = Diary(retrieve=lambda: logging.getLogger(name).warning("no space"))
    trace = Bench().pipeline.run(QUESTION, Run(told))
    logging.getLogger(name).warning("outside")
    inside, outside = lines(capsys)
    assert (inside["message"], inside["run"], inside["logger"]) == ("no space", trace.id, name)
    assert "run" not in outside


@pytest.mark.parametrize("wreck", ["closed", "full"])
def test_a_log_that_cannot_be_written_costs_a_run_nothing(wreck: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    stream = Full() if wreck == "full" else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    show_logs("json")
    if wreck == "closed":
        stream.close()
    assert bench_with().pipeline.run(QUESTION).answer is not None


def test_switched_off_nothing_is_told_not_even_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    show_logs("off")
    trace = bench_with(model=FakeModel(answer=ModelUnavailable("away"))).pipeline.run(QUESTION)
    assert trace.failure is not None and trace.failure.state is StepState.FAILED
    assert capfd.readouterr().err == ""
