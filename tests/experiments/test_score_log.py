"""What was graded is on the disk at once, for every process."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crag_core.base.errors import ScoresUnavailable
from crag_core.experiments.batch import score
from crag_core.experiments.labelled.graded import Conditions, ScoredQuestion, scored_from
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.store import ExperimentStore, OutcomeLog
from tests.fakes import Bench

CONDITIONS = Conditions("judge", "1", "", "", "none", 6, "corpus")


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


def test_what_cannot_be_read_is_graded_again(book: OutcomeLog[ScoredQuestion]) -> None:
    bench = Bench()
    score([asked(1)], bench.pipeline, book, bench.clock)
    with sqlite3.connect(book._tables.path) as database:
        database.execute("UPDATE crag_scored SET facts = 'no JSON'")
    before = book.state
    assert score([asked(1), asked(2)], bench.pipeline, book, bench.clock).done == 2
    assert book.load().keys() == {asked(1).key, asked(2).key} and book.state != before


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
    assert len(book.load()) == 2
