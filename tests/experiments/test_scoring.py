"""Grading a labelled set: once, in the face of stops, kills and faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from crag_core.base.errors import CragError, ModelUnavailable, ScoresUnavailable
from crag_core.experiments.batch import SetProgress, score
from crag_core.experiments.labelled.graded import ScoredQuestion, conditions_of
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.trace.trace import Trace
from tests.fakes import USEFUL, Bench, FakeModel, card, passage
from tests.stand_ins.local_server import wait_until


class Book:
    """Keeps in memory; `before` may raise or wait."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[ScoredQuestion, Trace]] = {}
        self.before: Callable[[], None] = lambda: None

    def load(self) -> dict[str, ScoredQuestion]:
        return {key: scored for key, (scored, _) in self.rows.items()}

    def add(self, scored: ScoredQuestion, trace: Trace) -> None:
        self.before()
        self.rows[scored.key] = (scored, trace)


def questions(count: int, **changes: object) -> tuple[LabelledQuestion, ...]:
    asked = (LabelledQuestion(f"Question {n}?", Expected.CORRECT) for n in range(count))
    return tuple(replace(one, **changes) for one in asked)  # type: ignore[arg-type]


def test_every_question_is_retrieved_and_graded_once_and_nothing_else_is_done() -> None:
    bench, book, told = Bench(model=FakeModel()), Book(), []
    done = score(questions(5), bench.pipeline, book, bench.clock, on_progress=told.append)
    assert bench.counts == {"retrieve": 5, "grade": 15}
    assert (done.done, done.total, done.failed) == (5, 5, 0)
    assert [one.done for one in told] == [0, 1, 2, 3, 4, 5] and told[0].left is None
    assert told[-1].left == 0 and told[2].left and told[2].left > 0
    scored, trace = book.rows[questions(1)[0].key]
    assert scored.grades and [grade.score for grade in scored.grades] == [0.9] * 3
    assert all(not one.text for one in scored.passages) and all(one.text for one in trace.passages or ())
    assert trace.decision is not None and scored.run_id == trace.id and trace.answer is None


def test_what_is_graded_is_not_graded_again_and_a_longer_set_costs_only_what_is_new() -> None:
    bench, book = Bench(), Book()
    score(questions(3), bench.pipeline, book, bench.clock)
    bench.forget_counts()
    assert score(questions(3), bench.pipeline, book, bench.clock).done == 3
    assert bench.counts == {}
    score(questions(5, expected=Expected.INCORRECT), bench.pipeline, book, bench.clock)
    assert bench.counts == {"retrieve": 2, "grade": 6}, "another label of the same question costs nothing"


def test_passages_that_hold_the_hidden_text_count_as_not_indexed() -> None:
    bench, book = Bench(), Book()
    hidden = replace(questions(1)[0], expected=Expected.AMBIGUOUS, without=USEFUL)
    bench.found = (passage("p1", f"{USEFUL} And more."), passage("p2", "Something else."))
    score([hidden], bench.pipeline, book, bench.clock)
    ((scored, trace),) = book.rows.values()
    assert [one.id for one in scored.passages] == ["pp2"] and len(trace.passages or ()) == 1
    assert questions(1)[0].key != hidden.key


def test_a_stop_keeps_what_was_graded_and_the_next_time_goes_on() -> None:
    bench, book, cancel = Bench(), Book(), threading.Event()

    def stop(scoring: SetProgress) -> None:
        if scoring.done == 2:
            cancel.set()

    done = score(questions(50), bench.pipeline, book, bench.clock, cancel=cancel, on_progress=stop)
    assert 2 <= done.done < 10 and len(book.rows) == done.done
    before = len(bench.retriever.asked)
    score(questions(50), bench.pipeline, book, bench.clock)
    assert len(book.rows) == 50 and len(bench.retriever.asked) <= 50 + (before - done.done)


def test_several_at_a_time() -> None:
    bench, book, meeting = Bench(), Book(), threading.Barrier(3, timeout=5)
    bench.evaluator.before = lambda: meeting.wait() and None
    score(questions(6), bench.pipeline, book, bench.clock, workers=3)
    assert len(book.rows) == 6


def test_no_more_than_a_few_questions_are_under_way_however_long_the_set_is() -> None:
    bench, book, free = Bench(), Book(), threading.Event()
    book.before = lambda: free.wait(10) and None
    thread = threading.Thread(
        target=score, args=(questions(200), bench.pipeline, book, bench.clock), kwargs={"workers": 2}
    )
    thread.start()
    assert wait_until(lambda: len(bench.retriever.asked) >= 2, 60)
    time.sleep(0.2)
    assert len(bench.retriever.asked) == 2
    free.set()
    thread.join(20)
    assert len(book.rows) == 200


def failing(at: Callable[[str], bool], error: CragError) -> Bench:
    bench = Bench(judge=card(calls_model=True), model=FakeModel())

    def find(question: str, engine: object) -> tuple[object, ...]:
        if at(question):
            raise error
        return bench.found

    bench.retriever.finding = find  # type: ignore[assignment]
    return bench


def test_where_everything_fails_it_ends_soon_and_says_why() -> None:
    bench, book = failing(lambda question: True, ModelUnavailable("It is away.", hint="Start it.")), Book()
    with pytest.raises(ModelUnavailable, match=r"It is away\. Start it\."):
        score(questions(100), bench.pipeline, book, bench.clock)
    assert len(bench.retriever.asked) <= 6


def test_a_book_that_cannot_be_written_ends_it() -> None:
    bench, book = Bench(), Book()

    def full() -> None:
        raise ScoresUnavailable("The disk is full.")

    book.before = full
    with pytest.raises(ScoresUnavailable):
        score(questions(20), bench.pipeline, book, bench.clock)


def test_conditions_name_everything_that_a_grade_depends_on() -> None:
    settings = Bench(judge=card(calls_model=True), model=FakeModel()).pipeline.settings
    now = conditions_of(settings, "corpus")
    assert now.changed(now) == () and now.fingerprint == conditions_of(settings, "corpus").fingerprint
    others = {
        "the evaluator": replace(now, evaluator_version="2"),
        "the language model that grades": replace(now, writer="another"),
        "the prompts": replace(now, prompts="2"),
        "the embedding model": replace(now, embedding="another"),
        "the number of chunks": replace(now, top_k=3),
        "the documents": replace(now, corpus="another"),
    }
    for name, other in others.items():
        assert now.changed(other) == (name,) and other.fingerprint != now.fingerprint
    without_model = conditions_of(Bench(model=FakeModel()).pipeline.settings, "corpus")
    assert without_model.writer == "" and without_model.prompts == ""
