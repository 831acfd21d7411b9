"""Several configurations: one question side by side, and a labelled set in the face of stops, kills and faults."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from crag_core.base.concurrency import remembered
from crag_core.base.errors import CragError, ModelUnavailable
from crag_core.base.protocols import Messages
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Usage
from crag_core.base.types.web import WebOutcome
from crag_core.evaluators.policies import plain_rag
from crag_core.evaluators.support.by_model import ModelSupport
from crag_core.experiments.batch import SetProgress
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.run_configurations import Contender, run_each, run_set
from crag_core.experiments.comparison.table import Table
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import Cooldown, Run
from crag_core.trace.trace import Trace
from tests import builders
from tests.fakes import ANSWER, QUESTION, Bench, Diary, FakeModel, card, changed


class Book:
    """Keeps in memory; `before` may raise, or do something in the middle."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Outcome, Trace]] = {}
        self.added: list[str] = []
        self.before: Callable[[], object] = lambda: None

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
        cancel: threading.Event | None = None,
        on_progress: Callable[[SetProgress], None] = lambda scoring: None,
    ) -> SetProgress:
        return run_set(asked, self.contenders, self.bench.clock, cancel=cancel, on_progress=on_progress)

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
        assert book.rows.keys() == {asked.key for asked in questions(4)}
        for facts, trace in book.rows.values():
            assert trace.settings.policy.name == policy and facts.run_id == trace.id
            assert facts.action is Action.CORRECT and facts.is_answered and facts.failed == ""
            assert facts.usage == trace.usage and facts.seconds == trace.seconds > 0
            assert facts.contains == 1.0, "the known answer is compared"


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


def test_a_stop_between_two_configurations_keeps_the_first_and_goes_on_with_the_second() -> None:
    field, cancel = Field(), threading.Event()
    field.books[0].before = cancel.set
    done = field.run(questions(5), cancel)
    assert done.done == done.failed == 0, "a question that was stopped is neither done nor failed"
    assert [len(book.rows) for book in field.books] == [1, 0]
    (first,) = field.books[0].added
    field.books[0].before = lambda: None
    assert field.run(questions(5)).done == 5
    assert [len(book.rows) for book in field.books] == [5, 5]
    assert field.books[0].added.count(first) == 1 and len(field.books[0].added) == 5, "the first is not run again"


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


# --- what is run, and what it costs ---------------------------------------------------------------------------------


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


def test_no_run_waits_for_the_web_search_of_another() -> None:
    pause = Cooldown(lambda: 0.0)
    bench = Bench(changed("paper", web_cooldown=30.0), best=0.1, model=FakeModel(), pause=pause)
    traces = run_each(QUESTION, [bench.pipeline, bench.pipeline])
    assert [trace.web.outcome for trace in traces if trace.web] == [WebOutcome.USED, WebOutcome.USED]
    book = Book()
    run_set(questions(2), [Contender(bench.pipeline, book)], bench.clock)
    assert [facts.web for facts in book.load().values()] == [WebOutcome.USED, WebOutcome.USED]
    assert bench.counts["search"] == 4 and pause.left(30.0) == 0.0, "nor does the user afterwards"
