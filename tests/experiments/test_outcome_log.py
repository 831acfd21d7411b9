"""What whole runs came to is kept at once, with every fact, under the setup that they were run under."""

from __future__ import annotations

import sqlite3
from dataclasses import fields, replace
from pathlib import Path

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Usage
from crag_core.experiments.comparison.outcome import Evidence, Outcome, Setup, outcome_of
from crag_core.experiments.comparison.run_configurations import Contender, run_set
from crag_core.experiments.labelled.graded import conditions_of, scored_from
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.store import OUTCOMES, ExperimentStore, OutcomeLog
from crag_core.pipeline.run import WebMode
from crag_core.trace.trace import RunSettings, Trace
from tests import builders
from tests.fakes import Bench, FakeModel

ASKED = LabelledQuestion("When does the ferry leave?", Expected.CORRECT, ("nine",), "document-1.txt")
SETUP = Setup(builders.settings(builders.policy("paper")), "corpus")
FULL = Outcome(
    key=ASKED.key,
    run_id="run-1",
    action=Action.AMBIGUOUS,
    before=Evidence((2, 0, 1), 310, 120),
    after=Evidence(None, 12, 0),
    score_before=0.1 + 0.2,
    score_after=0.0,
    is_answered=True,
    contains=1.0,
    sentences=4,
    grounded=2,
    ungrounded=1,
    web="used",
    seconds=1.25e-7,
    usage=Usage(7, 1200, 340),
    failed="",
)


@pytest.fixture
def book(tmp_path: Path) -> OutcomeLog[Outcome]:
    return ExperimentStore(tmp_path / "deep").outcomes(SETUP)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Bench(model=FakeModel()).pipeline.run(ASKED.question)


def again(book: OutcomeLog[Outcome], setup: Setup = SETUP) -> OutcomeLog[Outcome]:
    return ExperimentStore(book._tables.path.parent).outcomes(setup)


def test_every_fact_of_a_run_comes_back_as_it_was(book: OutcomeLog[Outcome], trace: Trace) -> None:
    plain = Outcome("k", "r", None)
    same = [field.name for field in fields(Outcome) if getattr(FULL, field.name) == getattr(plain, field.name)]
    assert same == ["failed"], "a fact that is not there is no test of the way back"
    book.add(FULL, trace)
    book.add(replace(FULL, key="another", failed="answer: It is away."), trace)
    assert again(book).load() == {FULL.key: FULL, "another": replace(FULL, key="another", failed="answer: It is away.")}


def test_the_whole_run_is_there_too(book: OutcomeLog[Outcome], trace: Trace) -> None:
    facts = outcome_of(trace, ASKED)
    book.add(facts, trace)
    assert again(book).load() == {ASKED.key: facts} and again(book).record(ASKED.key) == trace
    assert again(book).record("another") is None


def test_a_run_takes_the_place_of_an_earlier_one_of_its_question(book: OutcomeLog[Outcome], trace: Trace) -> None:
    book.add(FULL, trace)
    book.add(replace(FULL, run_id="run-2", seconds=9.0), replace(trace, id="run-2"))
    (found,) = book.load().values()
    record = book.record(FULL.key)
    assert (found.run_id, found.seconds) == ("run-2", 9.0) and record is not None and record.id == "run-2"


def changed_settings(**changes: object) -> Setup:
    return replace(SETUP, settings=replace(SETUP.settings, **changes))  # type: ignore[arg-type]


PAPER = builders.policy("paper")
OTHERS: dict[str, Setup] = {
    "other documents": replace(SETUP, corpus="another"),
    "another web": replace(SETUP, web="Offline web 0123456789abcdef"),
    "another policy": changed_settings(policy=builders.policy("signals")),
    "moved thresholds": changed_settings(policy=PAPER.with_thresholds(upper=0.61)),
    "another rule": changed_settings(policy=replace(PAPER, skip=(("always", None),))),
    "another evaluator": changed_settings(evaluator=replace(builders.CARD, name="another")),
    "another writer": changed_settings(writer="ollama/llama3.2"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_setup_has_rows_of_its_own(other: Setup, book: OutcomeLog[Outcome], trace: Trace) -> None:
    assert other.fingerprint != SETUP.fingerprint
    book.add(FULL, trace)
    beside = again(book, other)
    assert beside.load() == {} and beside.record(FULL.key) is None
    beside.add(replace(FULL, run_id="run-2"), trace)
    assert book.load() == {FULL.key: FULL}


@pytest.mark.parametrize(
    "spoil",
    [
        """UPDATE crag_scored SET facts = '{"unknown": 1}', record = X'00'""",
        "UPDATE crag_scored SET facts = 'no JSON', record = X'789c'",
        """UPDATE crag_scored SET facts = '{"key": "k", "run_id": "r", "action": "PERHAPS"}', record = X'00'""",
        "UPDATE crag_scored SET facts = '[]', record = X'00'",
    ],
)
def test_a_row_that_this_version_cannot_read_counts_as_not_there(
    spoil: str, book: OutcomeLog[Outcome], trace: Trace
) -> None:
    book.add(FULL, trace)
    book.add(replace(FULL, key="good"), trace)
    with sqlite3.connect(book._tables.path) as database:
        database.execute(f"{spoil} WHERE key = ?", (FULL.key,))
    assert book.load() == {"good": replace(FULL, key="good")}
    with pytest.raises(BadRecord, match="cannot be read any more"):
        book.record(FULL.key)
    before = book.state
    book.add(FULL, trace)
    assert book.load()[FULL.key] == FULL and book.record(FULL.key) == trace
    assert before != book.state == again(book).state, "pages look again"


def test_measures_of_an_earlier_version_are_left_aside(book: OutcomeLog[Outcome], trace: Trace) -> None:
    book.add(FULL, trace)
    with sqlite3.connect(book._tables.path) as database:
        earlier = '"label": "Correct", "known": [2], "exact": 0.0, "f1": 0.1, "before": {"beyond": [1], '
        database.execute("UPDATE crag_scored SET facts = replace(facts, ?, ?)", ('"before": {', earlier))
    assert book.load() == {FULL.key: FULL}


def test_outcomes_of_before_doubtful_endings_counted_as_unanswered_are_run_again(tmp_path: Path) -> None:
    bench = Bench(best=0.5, web=WebMode.OFF)
    setup = Setup(bench.pipeline.settings, "corpus")
    folder = tmp_path / "laboratory"
    trace = bench.pipeline.run(ASKED.question)
    old = replace(outcome_of(trace, ASKED), is_answered=True)
    OutcomeLog(ExperimentStore(folder).tables, OUTCOMES, setup, Outcome).add(old, trace)
    kept = ExperimentStore(folder).outcomes(setup)
    assert kept.load() == {}
    run_set((ASKED,), [Contender(bench.pipeline, kept)], bench.clock)
    assert not kept.load()[ASKED.key].is_answered
    bench.forget_counts()
    run_set((ASKED,), [Contender(bench.pipeline, kept)], bench.clock)
    assert not bench.counts, "run once, kept since"


def test_the_laboratory_keeps_outcomes_apart_from_what_was_graded(tmp_path: Path, trace: Trace) -> None:
    laboratory = ExperimentStore(tmp_path / "laboratory")
    book = laboratory.outcomes(SETUP)
    assert isinstance(book, OutcomeLog) and book.conditions == SETUP and not (tmp_path / "laboratory").exists()
    book.add(FULL, trace)
    made: RunSettings = trace.settings
    scores = laboratory.scores(conditions_of(made, "corpus"))
    assert scores.load() == {}
    scores.add(scored_from(Bench().pipeline.grade(ASKED.question), ASKED), trace)
    assert laboratory.outcomes(SETUP).load() == {FULL.key: FULL} and scores.load().keys() == {ASKED.key}
