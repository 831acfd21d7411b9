"""What was graded is on the disk at once, for every process, and survives a kill at any moment."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from crag_core.base.errors import ScoresUnavailable
from crag_core.experiments.labelled.graded import Conditions, ScoredQuestion, scored_from
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.store import ExperimentStore, OutcomeLog
from tests.fakes import Bench

CONDITIONS = Conditions("judge", "1", "", "", "none", 6, "corpus")
ROOT = Path(__file__).parents[2]


def asked(number: int) -> LabelledQuestion:
    return LabelledQuestion(f"Question {number}?", Expected.CORRECT)


@pytest.fixture
def book(tmp_path: Path) -> OutcomeLog[ScoredQuestion]:
    return ExperimentStore(tmp_path / "deep").scores(CONDITIONS)


def test_grades_of_the_version_before_are_read_without_their_second_readings(book: OutcomeLog[ScoredQuestion]) -> None:
    trace = Bench().pipeline.grade("Question 1?")
    scored = scored_from(trace, asked(1))
    book.add(scored, trace)
    with sqlite3.connect(book._tables.path) as database:
        database.execute("UPDATE crag_scored SET facts = json_set(facts, '$.grades[0].second', NULL)")
        database.execute("""UPDATE crag_scored SET facts = json_set(facts, '$.grades[1].second', '{"score": 0.9}')""")
    assert book.load() == {scored.key: scored}


def test_a_file_that_another_process_keeps_locked_is_told_as_that(book: OutcomeLog[ScoredQuestion]) -> None:
    trace = Bench().pipeline.grade("Question 1?")
    book.add(scored_from(trace, asked(1)), trace)
    book = ExperimentStore(book._tables.path.parent).scores(CONDITIONS)
    book._tables._busy = 0.05
    with closing(sqlite3.connect(book._tables.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ScoresUnavailable, match=r"locked") as told:
            book.add(scored_from(trace, asked(2)), trace)
    assert told.value.hint.startswith("Another process is writing to it")
    book.add(scored_from(trace, asked(2)), trace)
    assert len(book.keys()) == 2


WORKER = """
import sys, time
from pathlib import Path
from crag_core.experiments.store import ExperimentStore
from crag_core.experiments.batch import score
from tests.fakes import Bench
from tests.experiments.test_score_log import CONDITIONS, asked

bench = Bench()
bench.evaluator.before = lambda: time.sleep(0.01)
print("ready", flush=True)
questions, book = [asked(n) for n in range(int(sys.argv[2]))], ExperimentStore(Path(sys.argv[1])).scores(CONDITIONS)
score(questions, bench.pipeline, book, bench.clock, workers=2)
print(len(bench.retriever.asked))
"""


def start(path: Path, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(path), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.exhaustive
def test_killed_again_and_again_nothing_is_lost_and_nothing_graded_twice(tmp_path: Path) -> None:
    path, before, count = tmp_path, 0, 600
    for _ in range(2):
        worker = start(path, count)
        assert worker.stdout and worker.stdout.readline() == "ready\n"
        while len(ExperimentStore(path).scores(CONDITIONS).keys()) < before + 20:
            assert worker.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        worker.send_signal(signal.SIGKILL)
        worker.wait(10)
        kept = ExperimentStore(path).scores(CONDITIONS)
        assert len(kept.load()) == len(kept.keys()) >= before + 20
        before = len(kept.keys())
    last = start(path, count)
    told, _ = last.communicate(timeout=60)
    assert last.returncode == 0
    assert int(told.split()[-1]) == count - before  # only what was missing was retrieved
    assert len(ExperimentStore(path).scores(CONDITIONS).load()) == count
