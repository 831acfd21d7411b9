"""Several configurations: one question side by side, and a labelled set in the face of stops, kills and faults."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.base.concurrency import remembered
from crag_core.base.errors import CragError, ModelUnavailable, ScoresUnavailable, Stopped
from crag_core.base.protocols import Messages
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Usage
from crag_core.base.types.web import WebOutcome
from crag_core.evaluators.policies import plain_rag
from crag_core.evaluators.support.by_model import ModelSupport
from crag_core.experiments.batch import FAILURES, Controls, SetProgress
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.run_configurations import Contender, run_each, run_set
from crag_core.experiments.comparison.setups import Setup
from crag_core.experiments.comparison.table import Table
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.store import ExperimentStore, OutcomeLog
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import Cooldown, Run
from crag_core.trace.trace import Trace
from tests import builders
from tests.fakes import ANSWER, QUESTION, USEFUL, Bench, Diary, FakeModel, card, changed, passage, set_when
from tests.stand_ins.local_server import wait_until

ROOT = Path(__file__).parents[2]


class Book:
    """Keeps in memory; `before` may raise, or do something in the middle."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Outcome, Trace]] = {}
        self.added: list[str] = []
        self.before: Callable[[], object] = lambda: None

    def keys(self) -> set[str]:
        return set(self.rows)

    def load(self) -> dict[str, Outcome]:
        return {key: facts for key, (facts, _) in self.rows.items()}

    def add(self, facts: Outcome, trace: Trace) -> None:
        self.before()
        self.rows[facts.key] = (facts, trace)
        self.added.append(facts.run_id)


class Field:
    """Plain RAG against the policy `paper`, with parts and books in reach: A and B."""

    def __init__(self, **options: object) -> None:
        self.bench = Bench(**{"model": FakeModel()} | options)  # type: ignore[arg-type]
        self.plain = self.bench.under(policy=plain_rag())
        self.paper = self.bench.under(policy=builders.policy("paper"))
        self.books = Book(), Book()

    @property
    def contenders(self) -> tuple[Contender, ...]:
        return Contender(self.plain, self.books[0]), Contender(self.paper, self.books[1])

    def run(
        self,
        asked: tuple[LabelledQuestion, ...],
        controls: Controls | None = None,
        workers: int = 1,
        on_progress: Callable[[SetProgress], None] = lambda scoring: None,
    ) -> SetProgress:
        return run_set(
            asked, self.contenders, self.bench.clock, workers=workers, controls=controls, on_progress=on_progress
        )

    def break_for(self, pipeline: str, at: Callable[[str], bool], error: CragError) -> None:
        """Writing the answer fails under one configuration, for some questions."""
        model = FakeModel(answer=lambda messages: error if at(messages[-1][1]) else ANSWER)
        made: Pipeline = getattr(self, pipeline)
        broken = self.bench.under(parts={"model": model}, policy=made.settings.policy, writer="another")
        setattr(self, pipeline, broken)


def questions(count: int, **changes: object) -> tuple[LabelledQuestion, ...]:
    asked = (LabelledQuestion(f"Question {n}?", Expected.CORRECT, ("nine",)) for n in range(count))
    return tuple(replace(one, **changes) for one in asked)  # type: ignore[arg-type]


# --- one question ---------------------------------------------------------------------------------------------------


def test_one_question_has_a_run_under_each_configuration_in_their_order() -> None:
    field = Field()
    traces = run_each(QUESTION, [field.plain, field.paper])
    assert [trace.settings.policy.name for trace in traces] == ["plain", "paper"]
    assert all(trace.question == QUESTION and trace.failure is None for trace in traces)
    assert len({trace.id for trace in traces}) == 2
    assert field.bench.counts["retrieve"] == 2 and field.bench.counts["grade"] == 3, "plain RAG grades nothing"
    assert run_each(QUESTION, []) == ()


def test_a_stop_ends_the_run_under_way_and_no_other_is_begun() -> None:
    field = Field()
    stop = threading.Event()
    listener = Diary(retrieve=stop.set)
    traces = run_each(QUESTION, [field.plain, field.paper, field.plain], Run(listener, stop))
    assert len(traces) == 1 and traces[0].failure is not None and traces[0].passages is not None
    assert listener.begun.count("retrieve") == 1


def test_a_stop_after_the_first_answer_keeps_that_run_whole() -> None:
    field = Field()
    stop = threading.Event()
    done = run_each(QUESTION, [field.plain, field.paper], Run(Diary(answer=stop.set), stop))
    assert len(done) == 1 and done[0].failure is None and done[0].answer is not None


def test_a_stop_before_the_beginning_leaves_one_run_that_tells_of_it() -> None:
    field = Field()
    stop = threading.Event()
    stop.set()
    (trace,) = run_each(QUESTION, [field.plain, field.paper], Run(cancel=stop))
    assert trace.failure is not None and trace.failure.summary == "Stopped by you."
    assert field.bench.counts == {}


def test_a_run_that_fails_does_not_keep_the_others_from_running() -> None:
    field = Field()
    field.break_for("plain", lambda text: True, ModelUnavailable("It is away."))
    broken, good = run_each(QUESTION, [field.plain, field.paper])
    assert broken.failure is not None and broken.failure.summary == "It is away."
    assert good.failure is None and good.answer is not None


# --- a labelled set -------------------------------------------------------------------------------------------------


def test_every_question_is_run_under_every_configuration_and_kept() -> None:
    field = Field()
    told: list[SetProgress] = []
    done = field.run(questions(4), on_progress=told.append)
    assert (done.done, done.total, done.failed) == (4, 4, 0)
    assert [scoring.done for scoring in told] == [0, 1, 2, 3, 4]
    assert field.bench.counts["retrieve"] == 8 and field.bench.counts["grade"] == 12
    for book, policy in zip(field.books, ("plain", "paper"), strict=True):
        assert book.keys() == {asked.key for asked in questions(4)}
        for facts, trace in book.rows.values():
            assert trace.settings.policy.name == policy and facts.run_id == trace.id
            assert facts.action is Action.CORRECT and facts.is_answered and facts.failed == ""
            assert facts.usage == trace.usage and facts.seconds == trace.seconds > 0
            assert facts.contains == 1.0, "the known answer is compared"


def test_what_is_run_is_not_run_again_and_a_longer_set_costs_only_what_is_new() -> None:
    field = Field()
    field.run(questions(3))
    field.bench.forget_counts()
    assert field.run(questions(3)).done == 3 and field.bench.counts == {}
    field.run(questions(5))
    assert field.bench.counts["retrieve"] == 4 and len(field.books[1].rows) == 5


def test_another_configuration_runs_alone_where_the_others_have_run() -> None:
    field = Field()
    field.run(questions(3))
    field.bench.forget_counts()
    before = [list(book.added) for book in field.books]
    third = Book()
    signals = field.bench.under(policy=builders.policy("signals"))
    done = run_set(questions(3), (*field.contenders, Contender(signals, third)), field.bench.clock)
    assert done.done == 3 and len(third.rows) == 3 and field.bench.counts["retrieve"] == 3
    assert [book.added for book in field.books] == before, "nothing of them is run or written again"


def test_each_run_is_kept_at_once_not_with_the_question() -> None:
    field, kept = Field(), []
    field.books[1].before = lambda: kept.append(len(field.books[0].rows))
    field.run(questions(3))
    assert kept == [1, 2, 3]


def test_a_stop_between_two_configurations_keeps_the_first_and_goes_on_with_the_second() -> None:
    field, controls = Field(), Controls()
    field.books[0].before = controls.cancel.set
    done = field.run(questions(5), controls)
    assert done.done == done.failed == 0, "a question that was stopped is neither done nor failed"
    assert [len(book.rows) for book in field.books] == [1, 0]
    (first,) = field.books[0].added
    field.books[0].before = lambda: None
    assert field.run(questions(5)).done == 5
    assert [len(book.rows) for book in field.books] == [5, 5]
    assert field.books[0].added.count(first) == 1 and len(field.books[0].added) == 5, "the first is not run again"


def test_a_stop_in_the_middle_of_a_run_keeps_nothing_of_it() -> None:
    field, controls = Field(), Controls()
    field.bench.evaluator.before = controls.cancel.set
    field.run(questions(5), controls)
    assert [len(book.rows) for book in field.books] == [1, 0]
    field.bench.evaluator.before = lambda: None
    assert field.run(questions(5)).done == 5


def test_a_stop_keeps_what_was_run_and_the_next_time_goes_on() -> None:
    field, controls = Field(), Controls()

    def stop(scoring: SetProgress) -> None:
        if scoring.done == 2:
            controls.cancel.set()

    done = field.run(questions(50), controls, on_progress=stop)
    assert 2 <= done.done < 10 and len(field.books[1].rows) == done.done
    assert field.run(questions(50)).done == 50
    assert all(len(book.added) == 50 for book in field.books), "nothing was run twice"


@pytest.mark.parametrize("workers", [2, 4])
def test_several_workers_run_and_keep_every_question_once(workers: int) -> None:
    field = Field()
    assert field.run(questions(30), workers=workers).done == 30
    assert all(len(book.added) == len(book.rows) == 30 for book in field.books)


def test_several_questions_are_under_way_at_a_time() -> None:
    field, meeting = Field(), threading.Barrier(3, timeout=10)

    def meet() -> None:
        meeting.wait()

    field.bench.evaluator.before = meet
    assert field.run(questions(6), workers=3).done == 6


@pytest.mark.parametrize(("is_stopped", "kept"), [(False, [3, 3]), (True, [0, 0])])
def test_a_pause_holds_it_until_it_is_over_or_stopped(is_stopped: bool, kept: list[int]) -> None:
    field, controls, begun = Field(), Controls(), threading.Event()
    controls.pause.set()
    thread = threading.Thread(
        target=field.run, args=(questions(3), controls), kwargs={"on_progress": lambda scoring: begun.set()}
    )
    thread.start()
    assert begun.wait(10)
    assert not wait_until(lambda: bool(field.bench.retriever.asked), 0.2)
    if is_stopped:
        controls.cancel.set()
    else:
        controls.pause.clear()
    thread.join(20)
    assert not thread.is_alive() and [len(book.rows) for book in field.books] == kept


# --- faults ---------------------------------------------------------------------------------------------------------


def test_a_question_that_fails_is_counted_and_left_out_and_tried_again() -> None:
    field = Field()
    field.break_for("paper", lambda text: "Question 3?" in text, ModelUnavailable("It is away."))
    done = field.run(questions(6))
    assert (done.done, done.failed) == (5, 1)
    assert [len(book.rows) for book in field.books] == [6, 5], "the other configuration has run it"
    table = Table(questions(6), {"A": field.books[0].load(), "B": field.books[1].load()})
    assert table.left_out == 1 and questions(6)[3] not in table.questions

    field.paper = field.bench.under(policy=builders.policy("paper"))
    assert field.run(questions(6)).done == 6
    assert [len(book.added) for book in field.books] == [6, 6], "only what is missing is run"


@pytest.mark.parametrize("pipeline", ["plain", "paper"])
def test_a_model_that_is_away_ends_it_after_a_few_questions_and_says_why(pipeline: str) -> None:
    field = Field()
    field.break_for(pipeline, lambda text: True, ModelUnavailable("It is away.", hint="Start it."))
    controls = Controls()
    with pytest.raises(ModelUnavailable, match=r"It is away\. Start it\."):
        field.run(questions(100), controls)
    other = field.books[1] if pipeline == "plain" else field.books[0]
    broken = field.books[0] if pipeline == "plain" else field.books[1]
    assert not broken.rows and FAILURES <= len(other.rows) <= 2 * FAILURES, "what did work is kept"
    assert controls.cancel.is_set()


def with_judge(field: Field, judge: FakeModel) -> Field:
    """An answer that is no quotation, judged by a model."""
    for name in ("plain", "paper"):
        pipeline: Pipeline = getattr(field, name)
        parts = {"model": FakeModel(answer="By nine."), "support": ModelSupport(judge, frozenset())}
        setattr(field, name, field.bench.under(parts=parts, policy=pipeline.settings.policy, support="ollama/judge"))
    return field


def test_an_answer_that_could_not_be_judged_is_not_kept_as_if_it_were_whole() -> None:
    judge = FakeModel(check=ModelUnavailable("The judge is away.", hint="Start it."))
    field = with_judge(Field(), judge)
    with pytest.raises(ModelUnavailable, match=r"not measured: The judge is away\. Start it\."):
        field.run(questions(5))
    assert [len(book.rows) for book in field.books] == [0, 0]
    judge.replies["check"] = '{"verdict": "supported", "sentences": []}'
    assert field.run(questions(5)).done == 5
    assert all(facts.grounded == 1 for book in field.books for facts in book.load().values())


def test_a_stop_while_an_answer_is_judged_keeps_nothing_of_its_run() -> None:
    controls = Controls()

    def judging(messages: Messages) -> Exception:
        controls.cancel.set()
        return Stopped("Stopped by you.")

    field = with_judge(Field(), FakeModel(check=judging))
    assert field.run(questions(5), controls).failed == 0
    assert [len(book.rows) for book in field.books] == [0, 0]


def test_failures_that_are_not_in_a_row_do_not_end_it() -> None:
    field = Field()
    odd = tuple(f"Question {n}?" for n in range(1, 20, 2))
    field.break_for("paper", lambda text: any(one in text for one in odd), ModelUnavailable("It is away."))
    done = field.run(questions(20))
    assert (done.done, done.failed) == (10, 10)


def test_where_all_of_a_few_questions_fail_it_says_why() -> None:
    field = Field()
    field.break_for("paper", lambda text: True, ModelUnavailable("It is away."))
    with pytest.raises(ModelUnavailable):
        field.run(questions(2))


def test_of_two_failures_the_first_is_told() -> None:
    field = Field()
    field.break_for("plain", lambda text: True, ModelUnavailable("The first."))
    field.break_for("paper", lambda text: True, ModelUnavailable("The second."))
    with pytest.raises(ModelUnavailable, match="The first"):
        field.run(questions(1))


def test_of_several_questions_that_fail_the_last_one_says_why() -> None:
    field, asked = Field(), iter(range(100))

    def away(messages: Messages) -> Exception:
        return ModelUnavailable(f"Away, time {next(asked)}.")

    field.paper = field.bench.under(parts={"model": FakeModel(answer=away)}, writer="another")
    with pytest.raises(ModelUnavailable, match=f"time {FAILURES - 1}"):
        field.run(questions(FAILURES))


def test_a_question_that_is_stopped_after_one_configuration_failed_is_not_counted_as_failed() -> None:
    field, controls = Field(), Controls()
    field.break_for("plain", lambda text: True, ModelUnavailable("It is away."))
    field.bench.evaluator.before = controls.cancel.set
    assert field.run(questions(5), controls).failed == 0


def test_a_book_that_cannot_be_written_ends_it_and_what_waits_is_not_begun() -> None:
    field, controls = Field(), Controls()

    def full() -> None:
        raise ScoresUnavailable("The disk is full.")

    field.books[0].before = full
    with pytest.raises(ScoresUnavailable):
        field.run(questions(50), controls)
    assert controls.cancel.is_set() and len(field.bench.retriever.asked) <= 2


def test_ctrl_c_does_not_wait_for_the_questions_that_are_queued() -> None:
    """It reaches the thread that waits, as an exception; the question under way hears of it by the cancel flag."""
    field, controls = Field(), Controls()

    def interrupt(scoring: SetProgress) -> None:
        if scoring.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        field.run(questions(50), controls, on_progress=interrupt)
    assert controls.cancel.is_set()
    assert len(field.bench.retriever.asked) <= 3 and len(field.books[1].rows) <= 2


def test_a_bug_is_no_failed_question() -> None:
    field = Field()

    def bug() -> None:
        raise ZeroDivisionError

    field.bench.evaluator.before = bug
    with pytest.raises(ZeroDivisionError):
        field.run(questions(5))


def test_an_empty_set_and_no_configuration_are_done_at_once() -> None:
    field = Field()
    assert field.run(()) == SetProgress(0, 0, 0, None)
    assert run_set(questions(2), (), field.bench.clock).done == 2
    assert field.bench.counts == {}


# --- what is run, and what it costs ---------------------------------------------------------------------------------


def test_passages_that_hold_the_hidden_text_count_as_not_indexed_for_all() -> None:
    field = Field(found=(passage(1, f"{USEFUL} And more."), passage(2, "Something else entirely.")))
    hidden = replace(questions(1)[0], expected=Expected.AMBIGUOUS, answers=(), without=USEFUL)
    field.run((hidden, questions(1)[0]))
    for book in field.books:
        assert [one.id for one in book.rows[hidden.key][1].passages or ()] == ["p2"]
        assert [one.id for one in book.rows[questions(1)[0].key][1].passages or ()] == ["p1", "p2"]


def test_each_configuration_costs_what_it_costs_alone() -> None:
    field = Field(judge=card("llm", calls_model=True))
    field.run(questions(1))
    (plain,), (paper,) = (book.load().values() for book in field.books)
    assert plain.usage.calls == 1
    assert paper.usage == plain.usage + Usage(3, 30, 6), "three grades and the same kind of answer"
    assert paper.seconds > 0
    again = Field(judge=card("llm", calls_model=True))
    run_set(questions(1), again.contenders[1:], again.bench.clock)
    (alone,) = again.books[1].load().values()
    assert (alone.usage, alone.seconds) == (paper.usage, paper.seconds)


class Memory:
    """A part that remembers: how often each run finds nothing in it."""

    def __init__(self) -> None:
        self.is_empty = False
        self.found: list[bool] = []

    def forget(self) -> None:
        self.is_empty = True

    def __call__(self, messages: Messages) -> str:
        self.found.append(self.is_empty)
        self.is_empty = False
        return ANSWER


def test_no_run_is_faster_for_what_an_earlier_one_has_read() -> None:
    memory = Memory()
    remembered.register(memory)
    field = Field(model=FakeModel(answer=memory))
    field.run(questions(2))
    run_each(QUESTION, [field.plain, field.paper])
    assert memory.found == [True] * 6


def test_what_is_hidden_is_found_in_no_round() -> None:
    found = (passage(1, "It leaves at nine."), *(passage(n, f"It leaves from quay {n}.") for n in (2, 3, 4)))
    bench, book = Bench("agentic", best=0.1, found=found, model=FakeModel()), Book()
    hidden = replace(questions(1)[0], expected=Expected.AMBIGUOUS, answers=(), without="nine")
    run_set([hidden], [Contender(bench.pipeline, book)], bench.clock)
    ((_, trace),) = book.rows.values()
    assert trace.rounds and [one.id for one in trace.all_passages] == ["p2", "p3", "p4"]


def test_no_run_waits_for_the_web_search_of_another() -> None:
    pause = Cooldown(lambda: 0.0)
    bench = Bench(changed("paper", web_cooldown=30.0), best=0.1, model=FakeModel(), pause=pause)
    traces = run_each(QUESTION, [bench.pipeline, bench.pipeline])
    assert [trace.web.outcome for trace in traces if trace.web] == [WebOutcome.USED, WebOutcome.USED]
    book = Book()
    run_set(questions(2), [Contender(bench.pipeline, book)], bench.clock)
    assert [facts.web for facts in book.load().values()] == [WebOutcome.USED, WebOutcome.USED]
    assert bench.counts["search"] == 4 and pause.left(30.0) == 0.0, "nor does the user afterwards"


def test_the_grades_of_files_reach_the_measures() -> None:
    field = Field()
    (asked,) = questions(1)
    run_set([asked], field.contenders, field.bench.clock, judged={asked.key: {"document-2.txt": 2}})
    (facts,) = field.books[0].load().values()
    assert facts.known == (2,) and facts.before is not None and facts.before.ranked == (0, 2, 0)


# --- on the disk ----------------------------------------------------------------------------------------------------


def setup_of(pipeline: Pipeline, corpus: str = "corpus") -> Setup:
    return Setup(pipeline.settings, corpus)


def books_in(folder: Path, field: Field, corpus: str = "corpus") -> tuple[OutcomeLog[Outcome], ...]:
    return tuple(
        ExperimentStore(folder).outcomes(setup_of(pipeline, corpus)) for pipeline in (field.plain, field.paper)
    )


def test_outcomes_are_kept_for_the_setup_that_they_were_run_under(tmp_path: Path) -> None:
    field = Field()
    books = books_in(tmp_path, field)
    contenders = [Contender(one, book) for one, book in zip((field.plain, field.paper), books, strict=True)]
    run_set(questions(3), contenders, field.bench.clock)
    plain, paper = (book.load() for book in books_in(tmp_path, field))
    assert plain.keys() == paper.keys() == {asked.key for asked in questions(3)}
    assert {one.run_id for one in plain.values()}.isdisjoint(one.run_id for one in paper.values())
    stricter = field.bench.under(policy=builders.policy("paper").with_thresholds(upper=0.95))
    assert ExperimentStore(tmp_path).outcomes(setup_of(stricter)).keys() == set()
    assert all(book.keys() == set() for book in books_in(tmp_path, field, "other documents"))


def test_a_row_that_cannot_be_read_any_more_is_run_again(tmp_path: Path) -> None:
    field = Field()
    books = books_in(tmp_path, field)
    contenders = [Contender(one, book) for one, book in zip((field.plain, field.paper), books, strict=True)]
    run_set(questions(2), contenders, field.bench.clock)
    with sqlite3.connect(tmp_path / "crag.db") as database:
        key = questions(2)[0].key
        database.execute('UPDATE crag_scored SET facts = \'{"of": "tomorrow"}\' WHERE key = ?', (key,))
    assert all(len(book.load()) == 1 for book in books)
    field.bench.forget_counts()
    assert run_set(questions(2), contenders, field.bench.clock).done == 2
    assert all(len(book.load()) == 2 for book in books) and field.bench.counts["retrieve"] == 2


WORKER = """
import sys, time
from pathlib import Path
from crag_core.experiments.comparison.run_configurations import Contender, run_set
from tests.experiments.test_comparing import Field, books_in, questions

graded = 0

def grade():
    global graded
    graded += 1
    time.sleep(0.005 if graded <= int(sys.argv[3]) else 60)  # it waits to be killed

field = Field()
field.bench.evaluator.before = grade
books = books_in(Path(sys.argv[1]), field)
contenders = [Contender(one, book) for one, book in zip((field.plain, field.paper), books, strict=True)]
print("ready", flush=True)
run_set(questions(int(sys.argv[2])), contenders, field.bench.clock, workers=2)
print(len(field.bench.retriever.asked))
"""


def start(folder: Path, count: int, graded: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(folder), str(count), str(graded)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.exhaustive
def test_killed_again_and_again_nothing_is_lost_and_nothing_is_run_twice(tmp_path: Path) -> None:
    field, count, before, missing = Field(), 200, 0, 0
    for _ in range(3):
        worker = start(tmp_path, count, 30)
        assert worker.stdout and worker.stdout.readline() == "ready\n"
        while len(books_in(tmp_path, field)[1].keys()) < before + 10:
            assert worker.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        worker.send_signal(signal.SIGKILL)
        worker.wait(10)
        kept = books_in(tmp_path, field)
        assert all(len(book.load()) == len(book.keys()) for book in kept)
        assert len(kept[0].keys()) >= len(kept[1].keys()) >= before + 10, "plain RAG runs first"
        before, missing = len(kept[1].keys()), sum(count - len(book.keys()) for book in kept)
    last = start(tmp_path, count, count)
    told, _ = last.communicate(timeout=120)
    assert last.returncode == 0 and int(told.split()[-1]) == missing
    assert all(len(book.load()) == count for book in books_in(tmp_path, field))


# --- what stops a run -----------------------------------------------------------------------------------------------


def test_a_stop_reaches_a_model_that_is_writing() -> None:
    field, controls = Field(), Controls()
    asked = threading.Event()

    def long_answer(messages: Messages) -> str:
        asked.set()
        assert controls.cancel.wait(10)
        return "word " * 1000

    field.bench.model = FakeModel(answer=long_answer)
    field.plain = field.bench.under(parts={"model": field.bench.model}, policy=plain_rag())
    set_when(asked.is_set, controls.cancel)
    done = field.run(questions(3), controls)
    assert done.done == 0 and not any(book.rows for book in field.books)


def test_stopped_is_told_apart_from_failed() -> None:
    field, controls = Field(), Controls()
    controls.cancel.set()
    assert field.run(questions(3), controls) == SetProgress(0, 3, 0, None)
    assert issubclass(Stopped, CragError)
