"""A full disk: what was there is read and searched, what does not fit is told, and all goes on once there is room."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.errors import HistoryUnavailable, ScoresUnavailable, StoreUnavailable
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet
from crag_core.observability.logs import show_logs
from crag_core.trace.trace import Trace
from tests.faults.full_disk import Disk, Limited, small_disk
from tests.faults.parts import DOCUMENTS, QUESTION, broken_at, fill, quoting, step
from tests.retrieval.fakes import write_prose

NEW = ("lights.txt", b"The harbour lights are lit at eight.")
FULL = r"[Nn]o space left|disk is full|unable to open|disk I/O|File too large"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.fixture
def workbench(disk: Disk) -> Workbench:
    """With its home on that disk, three documents in it, and one run behind it."""
    made = start(disk)
    fill(made)
    made.history.save(ask(made))
    return made


def start(disk: Disk, **settings: str) -> Workbench:
    return Workbench(Config(**{"home": disk.folder / "home", "ollama_host": "http://127.0.0.1:9", **settings}))


def ask(workbench: Workbench) -> Trace:
    trace = workbench.engine(quoting(workbench)).run(QUESTION)
    assert broken_at(trace) == "" and trace.answer is not None and "14 pounds" in trace.answer.text
    return trace


def test_started_on_a_full_disk_it_answers_from_what_is_indexed(disk: Disk, workbench: Workbench) -> None:
    kept = workbench.history.search()
    disk.fill()
    again = start(disk)
    ask(again)
    assert [document.name for document in again.store.documents()] == sorted(DOCUMENTS)
    assert again.history.search() == kept, "SQLite shares memory between readers, which takes room"
    assert again.experiments.set_names() == () and again.experiments.preset_names() == ()
    with pytest.raises(HistoryUnavailable, match="cannot be written") as fault:
        again.history.save(replace(ask(again), id="one-more"))
    assert "Free some disk space" in fault.value.hint
    disk.free()
    assert again.history.search() == kept
    again.history.save(replace(ask(again), id="one-more"))
    assert len(again.history.search()) == len(kept) + 1 and again.history.problem == ""


def test_a_document_that_does_not_fit_is_absent_and_the_others_are_whole(disk: Disk, workbench: Workbench) -> None:
    disk.fill()
    with pytest.raises(StoreUnavailable, match=FULL) as fault:
        workbench.store.ingest([NEW])
    if not isinstance(disk, Limited):
        assert "Free some disk space and try again; what was kept before is safe." in fault.value.hint
    for now in (workbench, start(disk)):
        assert [document.name for document in now.store.documents()] == sorted(DOCUMENTS)
        ask(now)
    disk.free()
    assert [one.outcome for one in workbench.store.ingest([NEW])] == ["indexed"]
    assert workbench.store.search_keyword("lights", 1)


def test_the_disk_fills_while_documents_go_in(disk: Disk, workbench: Workbench) -> None:
    """Full between one write and the next: what went in before stays, and nothing half is left behind."""
    many = [(f"story-{number}.txt", write_prose(f"story {number}")) for number in range(6)]
    told: list[str] = []

    def watch(progress: object) -> None:
        told.append(str(progress))
        if len(told) == 4:
            disk.fill()

    with pytest.raises(StoreUnavailable, match=FULL):
        workbench.store.ingest(many, watch)
    there = workbench.store.documents()
    assert {document.name for document in there} >= set(DOCUMENTS)
    for document in there:
        assert len(workbench.store.passages_of(document.id)) == document.passages
    ask(workbench)
    disk.free()
    again = start(disk)
    again.store.finish_interrupted()
    again.store.ingest(many)
    assert {document.name for document in again.store.documents()} == {*DOCUMENTS, *(name for name, _ in many)}
    assert not [path.name for path in (disk.folder / "home").iterdir() if path.name.startswith(".new-")]


def test_a_run_is_there_though_it_cannot_be_kept(disk: Disk, workbench: Workbench) -> None:
    disk.fill()
    trace = ask(workbench)
    large = replace(trace, id="large", question="why " * 50_000)
    with pytest.raises(HistoryUnavailable, match=FULL) as fault:
        workbench.history.save(large)
    assert "cannot be written" in fault.value.message and workbench.history.problem == str(fault.value)
    disk.free()
    assert len(workbench.history.search()) == 1 and workbench.history.load("large") is None
    workbench.history.save(large)
    assert workbench.history.load("large") == large and workbench.history.problem == ""


def test_the_audit_log_says_that_it_cannot_be_written_and_goes_on(disk: Disk, workbench: Workbench) -> None:
    assert workbench.audit is not None and workbench.audit.problem == ""
    disk.fill()
    trace = ask(workbench)
    for _ in range(200):  # the room that is left takes the first of them
        workbench.audit.finished(step(trace, "route"), trace)
    assert "The audit log in" in workbench.audit.problem and "cannot be written" in workbench.audit.problem
    before = [*workbench.audit.lines()]
    disk.free()
    for now in (workbench, start(disk)):
        last = ask(now)
        assert now.audit is not None and now.audit.problem == ""
        there = [*now.audit.lines()]
        assert there[: len(before)] == before and last.id in [json.loads(line)["run"] for _, line in there]


def test_sets_are_whole_or_as_they_were(disk: Disk, workbench: Workbench) -> None:
    first = LabelledSet("dues", (LabelledQuestion("What does a yacht pay?", Expected.CORRECT),))
    workbench.experiments.keep_set(first)
    many = (LabelledQuestion(f"What does yacht {n} pay?", Expected.CORRECT) for n in range(2000))
    larger = LabelledSet("dues", tuple(many))
    disk.fill()
    with pytest.raises(ScoresUnavailable, match=FULL):
        workbench.experiments.keep_set(larger, first)
    assert workbench.experiments.load_set("dues").questions == first.questions
    disk.free()
    workbench.experiments.keep_set(larger, first)
    assert workbench.experiments.load_set("dues").questions == larger.questions


def test_log_lines_that_cannot_be_written_cost_a_run_nothing(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = io.TextIOWrapper(open("/dev/full", "wb", buffering=0), "utf-8", write_through=True)  # noqa: SIM115
    monkeypatch.setattr("sys.stderr", full)
    show_logs("json")
    try:
        ask(workbench)
        logging.getLogger("crag.cache").warning("something")
    finally:
        show_logs("off")
