"""One question under several configurations: nothing is done twice, and every record is that of a run alone."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.errors import CragError, EmbeddingUnavailable, ModelUnavailable, StoreUnavailable
from crag_core.base.protocols import Messages, WebReply
from crag_core.base.types import Engine, EvaluatorCard, Grade, Passage, StepState, Usage, WebOutcome
from crag_core.decision.policy import Policy
from crag_core.evaluators import ModelSupport
from crag_core.experiments.comparison.call_memo import SharedWork
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import Run, WebMode
from crag_core.trace.trace import LANES, Trace
from crag_core.websearch.cooldown import Cooldown
from tests.core.builders import POLICIES
from tests.fakes import (
    ANSWER,
    QUESTION,
    USEFUL,
    Bench,
    Diary,
    FakeModel,
    Scoring,
    by_id,
    card,
    changed,
    found_web,
    passage,
    passages,
    score_strip,
)

JUDGE = card("llm", calls_model=True)
SYNONYMS = {"ferry": ("boat", "ship"), "leave": ("depart",)}


class Time:
    """Stands still while nothing works.

    Every thread has its own time, so that the lanes of a run do not disturb each other. What is waited for goes on
    beside other such work, whichever threads do it, and the main thread has waited for the longest.
    """

    def __init__(self) -> None:
        self._main, self._joined = 0.0, 0.0
        self._here = threading.local()
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            if threading.current_thread() is threading.main_thread():
                self._main = max(self._main, self._joined)
                return self._main
            now = self._begun()
            if getattr(self._here, "is_at_end", False):
                del self._here.time, self._here.is_at_end
            return now

    def work(self, seconds: float, is_waited_for: bool = False) -> None:
        with self._lock:
            if threading.current_thread() is threading.main_thread():
                self._main = max(self._main, self._joined) + seconds
                return
            self._here.time = self._begun() + seconds
            if is_waited_for:
                self._here.is_at_end = True
                self._joined = max(self._joined, self._main + seconds)

    def _begun(self) -> float:
        return float(getattr(self._here, "time", self._main))


class TimedModel(FakeModel):
    """Takes a second for every reply, and an eighth for every piece of an answer."""

    def __init__(self, time: Time, **replies: Any) -> None:
        super().__init__(**replies)
        self.time = time

    def _reply(self, messages: Messages) -> str | Exception:
        self.time.work(1.0)
        return super()._reply(messages)

    def stream(self, messages: Messages, cancel: threading.Event) -> Any:
        for piece in super().stream(messages, cancel):
            self.time.work(0.125)
            yield piece


def timed(policy: str | Policy = "paper", scoring: Scoring | None = None, **options: Any) -> tuple[Bench, Time]:
    """A bench whose parts take known times.

    A retrieval: 2 s for a short query, 3 s for a long one; a grade: 0.5 s; a strip: 0.25 s; a search: 4 s.
    """
    time = Time()
    grades = scoring or by_id(p1=0.5, p2=0.1, p3=0.9)
    options = {"synonyms": SYNONYMS} | options
    replies = options.pop("replies", {})
    bench = Bench(policy, **{"model": TimedModel(time, **replies)} | options)
    find = bench.retriever.finding

    def finding(query: str, engine: Any) -> Sequence[Passage]:
        time.work(3.0 if len(query) > len(QUESTION) else 2.0, is_waited_for=True)
        return find(query, engine)

    def grading(one: Passage) -> float | Grade | None:
        time.work(0.5)
        return grades(one)

    def scoring_strips(one: Passage) -> float:
        time.work(0.25)
        return score_strip(one)

    bench.retriever.finding, bench.evaluator.scoring = finding, grading
    bench.strip_evaluator.scoring = scoring_strips
    bench.searcher.before = lambda cancel: time.work(4.0)
    bench.clock = time  # type: ignore[assignment]
    bench.pipeline = bench.under()
    return bench, time


def numbered(count: int) -> tuple[Passage, ...]:
    """Passages of which no two have the same text."""
    return tuple(passage(number, f"{USEFUL} Note {number} is of no use.") for number in range(1, count + 1))


def pipeline(bench: Bench, policy: str | Policy, judge: EvaluatorCard | None = None, **settings: Any) -> Pipeline:
    """The parts of the bench under another policy, another evaluator, or other settings."""
    wanted: dict[str, Any] = {"policy": changed(policy) if isinstance(policy, str) else policy} | settings
    if judge is None:
        return bench.under(**wanted)
    bench.evaluator.card = judge
    return bench.under(evaluator=judge, **wanted)


def shared(bench: Bench, *policies: str | Policy, **settings: Any) -> list[Trace]:
    work = SharedWork(bench.clock)
    return [work.run(pipeline(bench, policy, **settings), QUESTION) for policy in policies]


def comparable(trace: Trace) -> Trace:
    """Without what tells one run from another, and the steps of one lane before those of the other."""
    lane = LANES[1]
    steps = sorted(trace.steps, key=lambda step: step.name in lane)
    return replace(trace, id="", created="", steps=tuple(steps))


# --- done once ------------------------------------------------------------------------------------------------------


def test_configurations_with_the_same_retrieval_retrieve_once() -> None:
    bench = Bench(model=FakeModel(), best=0.9)
    traces = shared(bench, "paper", "worst-chunk", "rank-weighted")
    assert bench.counts["retrieve"] == 1
    assert {trace.passages for trace in traces} == {passages()}


@pytest.mark.parametrize("settings", [{"top_k": 2}, {"embedding": "another"}])
def test_another_retrieval_is_made(settings: dict[str, Any]) -> None:
    bench, work = Bench(model=FakeModel(), best=0.9), None
    work = SharedWork(bench.clock)
    for pipe in (bench.pipeline, bench.under(**settings), bench.pipeline, bench.under(**settings)):
        work.run(pipe, QUESTION)
    assert bench.counts["retrieve"] == 2


def test_other_questions_share_nothing() -> None:
    bench = Bench(model=FakeModel(), best=0.9)
    work = SharedWork(bench.clock)
    for question in (QUESTION, "When does the ferry return?"):
        work.run(bench.pipeline, question)
    assert bench.counts == {"retrieve": 2, "grade": 6, "strips": 12, "answer": 2}


def test_the_same_configuration_twice_costs_nothing_more() -> None:
    for policy in POLICIES:
        bench = Bench(policy, best=0.5, model=FakeModel(), synonyms=SYNONYMS, judge=JUDGE)
        work = SharedWork(bench.clock)
        work.run(bench.pipeline, QUESTION)
        once = bench.counts
        work.run(bench.pipeline, QUESTION)
        assert bench.counts == once, policy


def test_pinned_files_are_read_once() -> None:
    bench = Bench(files=(passage(9, document_id="f1"),), search_too=True, model=FakeModel())
    shared(bench, "paper", "worst-chunk")
    assert bench.retriever.read == [("f1",)]
    shared(bench, "paper", pinned=())
    assert bench.retriever.read == [("f1",)]


def test_other_files_are_read_by_themselves() -> None:
    files = tuple(passage(number, document_id=f"f{number}") for number in (8, 9))
    bench, seen = Bench(files=files, model=FakeModel()), []
    work = SharedWork(bench.clock)
    for pinned in (("f8",), ("f9",), ("f8", "f9"), ("f9",)):
        trace = work.run(bench.under(pinned=pinned), QUESTION)
        seen.append([one.document_id for one in trace.passages or ()])
    assert seen == [["f8"], ["f9"], ["f8", "f9"], ["f9"]] and len(bench.retriever.read) == 3


def test_another_way_to_search_is_another_retrieval() -> None:
    def find(query: str, engine: Engine) -> tuple[Passage, ...]:
        return numbered(4) if engine is Engine.HYBRID else (passage(7, "Quay seven."),)

    bench = Bench("agentic", best=0.1, finding=find, model=FakeModel(), judge=JUDGE)
    alone = bench.pipeline.run(QUESTION)
    assert (QUESTION, Engine.KEYWORD) in bench.retriever.ways
    (together,) = shared(bench, "agentic")
    assert together.rounds == alone.rounds


def test_passages_that_are_taken_away_are_found_in_no_round() -> None:
    found = (passage(1, "It leaves at nine."), *(passage(n, f"It leaves from quay {n}.") for n in (2, 3, 4)))
    bench = Bench("agentic", best=0.1, found=found, model=FakeModel(), synonyms=SYNONYMS)
    work = SharedWork(bench.clock, "nine")
    first, second = (work.run(pipeline(bench, policy), QUESTION) for policy in ("agentic", "paper"))
    assert [one.id for one in first.all_passages] == [one.id for one in second.all_passages] == ["p2", "p3", "p4"]
    assert first.rounds and bench.retriever.ways.count((QUESTION, "hybrid")) == 1


# --- grades ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("judge", [card(), JUDGE])
def test_each_passage_is_graded_once_whatever_a_policy_looks_at(judge: EvaluatorCard) -> None:
    bench = Bench(found=passages(5), best=0.9, judge=judge, model=FakeModel())
    work = SharedWork(bench.clock)
    seen = [work.run(bench.under(top_k=top_k), QUESTION) for top_k in (3, 2, 4, 5)]
    assert bench.evaluator.graded == ["p1", "p2", "p3", "p4", "p5"]
    assert bench.evaluator.asked == [("p1", "p2", "p3"), ("p4",), ("p5",)]
    assert [[grade.passage_id for grade in trace.grades or ()] for trace in seen] == [
        ["p1", "p2", "p3"],
        ["p1", "p2"],
        ["p1", "p2", "p3", "p4"],
        ["p1", "p2", "p3", "p4", "p5"],
    ]


def test_a_subset_in_another_order_keeps_every_grade_with_its_passage() -> None:
    bench = Bench(scoring=by_id(p1=0.7, p2=0.8, p3=0.9), model=FakeModel())
    work = SharedWork(bench.clock)
    work.run(bench.under(top_k=2), QUESTION)
    bench.retriever.finding = lambda query, engine: passages(3)[::-1]
    trace = work.run(bench.pipeline, QUESTION)
    assert [(grade.passage_id, grade.score) for grade in trace.grades or ()] == [("p3", 0.9), ("p2", 0.8), ("p1", 0.7)]
    assert bench.evaluator.asked == [("p1", "p2"), ("p3",)]


def test_a_passage_that_was_found_with_another_score_is_graded_anew() -> None:
    """Some evaluators make their grade of it."""
    bench = Bench(model=FakeModel(), best=0.9)
    work = SharedWork(bench.clock)
    work.run(bench.pipeline, QUESTION)
    bench.retriever.finding = lambda query, engine: (passage(1), passage(2, scores=(("cosine", 0.3),)))
    work.run(bench.under(top_k=2), QUESTION)
    assert bench.evaluator.asked == [("p1", "p2", "p3"), ("p2",)]


@pytest.mark.parametrize(
    ("judge", "settings"),
    [
        (card("other"), {}),
        (replace(card(), version="2"), {}),
        (card(), {"embedding": "another"}),
        (JUDGE, {"writer": "another"}),
        (JUDGE, {"prompts": "newer"}),
    ],
)
def test_another_evaluator_grades_anew(judge: EvaluatorCard, settings: dict[str, Any]) -> None:
    before = JUDGE if judge is JUDGE else card()
    bench = Bench(best=0.9, judge=before, model=FakeModel())
    work = SharedWork(bench.clock)
    work.run(bench.pipeline, QUESTION)
    work.run(pipeline(bench, "paper", judge, **settings), QUESTION)
    assert bench.evaluator.graded == ["p1", "p2", "p3"] * 2
    assert bench.counts["strips"] == (12 if "embedding" in settings else 6), "of text that no retrieval measured"


def test_who_writes_the_answer_is_nothing_to_an_evaluator_without_a_model() -> None:
    bench = Bench(best=0.9, model=FakeModel())
    work = SharedWork(bench.clock)
    for writer in ("fake-model", "another"):
        work.run(bench.under(writer=writer), QUESTION)
    assert bench.counts == {"retrieve": 1, "grade": 3, "strips": 6, "answer": 2}


@pytest.mark.parametrize("judge", [card("signals"), replace(JUDGE, batch=5), replace(card("llm-list", True), batch=20)])
def test_grades_that_depend_on_the_company_are_asked_for_in_every_company(judge: EvaluatorCard) -> None:
    def graded(top_ks: Sequence[int]) -> list[tuple[str, ...]]:
        bench = Bench(best=0.9, judge=judge, model=FakeModel())
        work = SharedWork(bench.clock)
        for top_k in top_ks:
            work.run(bench.under(top_k=top_k), QUESTION)
        return bench.evaluator.asked

    assert graded((3, 2, 3, 2)) == [("p1", "p2", "p3"), ("p1", "p2")]


def test_strips_are_scored_once_and_by_another_scorer_anew() -> None:
    bench = Bench(best=0.9, model=FakeModel())
    shared(bench, "paper", "rank-weighted", "two-signal")
    assert len(bench.strip_evaluator.graded) == len(set(bench.strip_evaluator.graded)) == 6
    work = SharedWork(bench.clock)
    bench.strip_evaluator.asked.clear()
    for version in ("", "2", ""):
        scorer = replace(card("strips"), version=version)
        work.run(bench.under(strip_evaluator=scorer), QUESTION)
    assert len(bench.strip_evaluator.graded) == 12


# --- the model ------------------------------------------------------------------------------------------------------


def counted() -> Callable[[Messages], str]:
    """Another answer every time."""
    numbers = itertools.count(1)
    return lambda messages: f"Answer {next(numbers)} [1]."


def test_the_same_prompt_has_one_answer() -> None:
    bench = Bench(best=0.9, model=FakeModel(answer=counted()))
    one, other, third = shared(bench, "paper", "two-signal", "worst-chunk")
    assert bench.counts["answer"] == 2
    assert one.answer is not None and other.answer is not None and third.answer is not None
    assert one.answer.text == other.answer.text == "Answer 1 [1]." and one.answer.usage == other.answer.usage
    assert third.answer.text == "Answer 2 [1].", "whole passages are another prompt"


def test_another_writer_is_asked_the_same() -> None:
    bench = Bench(best=0.9, model=FakeModel(answer=counted()))
    work = SharedWork(bench.clock)
    texts = [work.run(bench.under(writer=writer), QUESTION).answer for writer in ("one", "other", "one")]
    assert [answer.text if answer else "" for answer in texts] == ["Answer 1 [1].", "Answer 2 [1].", "Answer 1 [1]."]


def test_a_remembered_answer_comes_in_the_same_pieces() -> None:
    bench = Bench(best=0.9, model=FakeModel())
    work, heard = SharedWork(bench.clock), []
    for _ in range(2):
        work.run(bench.pipeline, QUESTION, Run(diary := Diary()))
        heard.append(diary.pieces)
    assert heard[0] == heard[1] == [f"{piece} " for piece in ANSWER.split(" ")]
    assert bench.counts["answer"] == 1


def test_a_passage_is_read_once_for_what_to_extract() -> None:
    model = FakeModel(extract=f'{{"sentences": ["{USEFUL}"]}}')
    bench = Bench("worst-chunk", best=0.5, model=model, found=numbered(5))
    work = SharedWork(bench.clock)
    traces = [work.run(bench.under(top_k=top_k), QUESTION) for top_k in (3, 2, 5)]
    assert bench.counts["extract"] == 5
    for trace, count in zip(traces, (3, 2, 5), strict=True):
        assert [one.passage_id for one in trace.extractions or ()] == [f"p{n}" for n in range(1, count + 1)]
        assert all(one.strip_indexes == (0,) for one in trace.extractions or ())


def test_a_query_is_written_once() -> None:
    bench = Bench(best=0.5, model=FakeModel())
    shared(bench, "paper", "two-signal")
    assert (bench.counts["rewrite"], bench.counts["search"]) == (1, 1)
    shared(bench, "paper", "worst-chunk")
    assert (bench.counts["rewrite"], bench.counts["search"]) == (3, 3), "another number of words, and of results"


# --- who judges the answer ------------------------------------------------------------------------------------------


def test_the_same_answer_from_the_same_evidence_is_judged_once() -> None:
    bench, time = timed(best=0.9, scoring=by_id(p1=0.9, p2=0.9, p3=0.9), replies={"answer": "It leaves by nine [1]."})
    judge = TimedModel(time)
    parts = {"support": ModelSupport(judge, frozenset())}
    work = SharedWork(bench.clock)

    def run(policy: str, support: str = "ollama/judge") -> Trace:
        return work.run(bench.under(parts=parts, policy=changed(policy), support=support), QUESTION)

    one, other = run("paper"), run("two-signal")
    assert judge.kinds == ["check"] and one.support == other.support is not None
    assert one.steps[-1].usage == other.steps[-1].usage == Usage(1, 20, 5)
    assert one.steps[-1].seconds == other.steps[-1].seconds == 1.0, "it counts for each in full"
    run("worst-chunk")
    assert judge.kinds == ["check"] * 2, "whole passages are other evidence"
    run("paper", "ollama/another")
    assert judge.kinds == ["check"] * 3


def test_a_judge_that_was_away_is_asked_again() -> None:
    left: list[Exception] = [GONE]
    judge = FakeModel(check=lambda messages: left.pop() if left else '{"verdict": "partly", "sentences": []}')
    bench = Bench(best=0.9, model=FakeModel(answer="It leaves by nine [1]."))
    bench.pipeline = bench.under(parts={"support": ModelSupport(judge, frozenset())}, support="ollama/judge")
    first, second = shared(bench, "paper", "paper")
    assert first.support is None and [one.score for one in second.support or ()] == [0.45]


# --- the web --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [WebOutcome.USED, WebOutcome.EMPTY])
def test_the_same_query_is_sent_once(outcome: WebOutcome) -> None:
    reply = found_web() if outcome is WebOutcome.USED else WebReply(outcome, "Fake search", message="nothing")
    bench = Bench(best=0.1, model=FakeModel(), reply=reply)
    one, other = shared(bench, "paper", "two-signal")
    assert bench.counts["search"] == 1 and one.web == other.web
    assert one.web is not None and not one.web.from_cache, "alone it would not have been"


def test_another_query_is_another_search() -> None:
    words = itertools.count(1)
    bench = Bench(best=0.1, model=FakeModel(rewrite=lambda messages: f"query {next(words)}"))
    shared(bench, "paper", replace(changed("paper"), web_query_words=9), "paper")
    assert [query for query, _ in bench.searcher.asked] == ["query 1", "query 2"]


def test_another_number_of_results_is_another_search() -> None:
    bench = Bench(best=0.1, model=FakeModel())
    shared(bench, "paper", replace(changed("paper"), web_limit=2), "paper")
    assert [limit for _, limit in bench.searcher.asked] == [5, 2]


def test_an_answer_that_came_too_late_for_a_policy_is_not_given_to_it() -> None:
    bench, _ = timed(best=0.1, scoring=by_id(p1=0.1, p2=0.1, p3=0.1))
    hasty, patient = (replace(changed("paper"), web_seconds=seconds) for seconds in (3.0, 4.0))
    shared(bench, "paper", patient)
    assert len(bench.searcher.asked) == 1
    shared(bench, "paper", hasty)
    assert len(bench.searcher.asked) == 3


def test_no_policy_waits_for_the_search_of_another() -> None:
    pause = Cooldown(lambda: 0.0)
    bench = Bench(best=0.1, model=FakeModel(), pause=pause)
    policies = [replace(changed("paper"), web_cooldown=30.0, web_limit=limit) for limit in (5, 4)]
    traces = shared(bench, *policies)
    assert [trace.web.outcome for trace in traces if trace.web] == [WebOutcome.USED, WebOutcome.USED]
    assert bench.counts["search"] == 2 and pause.left(30.0) == 0.0, "nor does the user afterwards"


def test_off_and_on_do_not_mix() -> None:
    bench = Bench(best=0.1, model=FakeModel())
    work = SharedWork(bench.clock)
    off = bench.under(parts={"searcher": None}, web_mode=WebMode.OFF.value)
    traces = [work.run(one, QUESTION) for one in (bench.pipeline, off, bench.pipeline)]
    assert [trace.web.outcome for trace in traces if trace.web] == [WebOutcome.USED, WebOutcome.OFF, WebOutcome.USED]


# --- what failed is not remembered ----------------------------------------------------------------------------------


def failing(error: CragError) -> Callable[..., None]:
    """Fails the first time."""
    left = [error]

    def fail(*_: object) -> None:
        if left:
            raise left.pop()

    return fail


AWAY = EmbeddingUnavailable("The embedding model cannot be loaded.", hint="Install it.")
BROKEN = StoreUnavailable("The index cannot be read.", hint="Mend it.")
GONE = ModelUnavailable("Ollama went away.", hint="Start it.")


def assert_whole(trace: Trace) -> None:
    assert trace.failure is None and trace.answer is not None and trace.answer.text == ANSWER


def test_a_retrieval_that_failed_is_made_again() -> None:
    fail = failing(BROKEN)

    def find(query: str, engine: object) -> Sequence[Passage]:
        fail()
        return passages()

    broken, done = shared(Bench(best=0.9, finding=find, model=FakeModel()), "paper", "paper")
    assert broken.failure is not None and broken.failure.name == "retrieve"
    assert_whole(done)


@pytest.mark.parametrize("part", ["evaluator", "strip_evaluator", "searcher"])
def test_what_raised_is_asked_again(part: str) -> None:
    bench = Bench(best=0.5, model=FakeModel())
    getattr(bench, part).before = failing(AWAY)
    broken, done = shared(bench, "paper", "paper")
    assert broken.failure is not None and broken.failure.error == "EmbeddingUnavailable"
    assert_whole(done)


@pytest.mark.parametrize("judge", [JUDGE, replace(JUDGE, batch=3), card("signals")])
def test_grades_of_an_outage_are_asked_for_again_and_unreadable_ones_are_not(judge: EvaluatorCard) -> None:
    away = [Grade("p2", None, cause="away", retryable=True, error="ModelUnavailable")]

    def score(one: Passage) -> float | Grade | None:
        return away.pop() if one.id == "p2" and away else None if one.id == "p3" else 0.9

    bench = Bench(scoring=score, judge=judge, model=FakeModel())
    first, second, third = shared(bench, "paper", "two-signal", "paper")
    grades = [[grade.score for grade in trace.grades or ()] for trace in (first, second, third)]
    assert grades == [[0.9, None, None], [0.9, 0.9, None], [0.9, 0.9, None]]
    again = ("p2",) if judge is JUDGE else ("p1", "p2", "p3")
    assert bench.evaluator.asked == [("p1", "p2", "p3"), again]


@pytest.mark.parametrize("outcome", [WebOutcome.FAILED, WebOutcome.RATE_LIMITED, WebOutcome.TIMED_OUT])
def test_a_search_that_failed_is_made_again(outcome: WebOutcome) -> None:
    bench = Bench(best=0.1, model=FakeModel(), reply=WebReply(outcome, "Fake search", message="sorry"))
    work = SharedWork(bench.clock)
    first = work.run(bench.pipeline, QUESTION)
    bench.searcher.reply = found_web()
    second = work.run(bench.pipeline, QUESTION)
    assert first.web is not None and first.web.outcome is outcome
    assert second.web is not None and second.web.outcome is WebOutcome.USED and bench.counts["search"] == 2


@pytest.mark.parametrize("kind", ["rewrite", "extract", "answer"])
def test_a_reply_that_did_not_come_is_asked_for_again(kind: str) -> None:
    usual = FakeModel().replies
    left: list[Exception] = [GONE]
    model = FakeModel(**{kind: lambda messages: left.pop() if left else str(usual[kind])})
    bench = Bench("worst-chunk", best=0.5, model=model, found=numbered(3))
    broken, done = shared(bench, "worst-chunk", "worst-chunk")
    told = [step.summary for step in broken.steps if "Ollama went away." in step.summary]
    assert told and bench.counts[kind] == (4 if kind == "extract" else 2), "what did come is kept"
    assert_whole(done)


def test_a_stop_is_not_remembered() -> None:
    bench = Bench(best=0.5, model=FakeModel(), judge=JUDGE)
    work, going = SharedWork(bench.clock), Run()
    bench.evaluator.before = going.cancel.set
    stopped = work.run(bench.pipeline, QUESTION, going)
    assert stopped.failure is not None and stopped.failure.state is StepState.STOPPED
    bench.evaluator.before = lambda: None
    assert_whole(work.run(bench.pipeline, QUESTION))
    assert bench.counts["grade"] == 3 + 3 + 2


def test_an_answer_that_was_stopped_halfway_is_written_anew() -> None:
    bench = Bench(best=0.9, model=FakeModel())
    work, going = SharedWork(bench.clock), Run(diary := Diary())
    diary.wrote = lambda piece: going.cancel.set()  # type: ignore[method-assign]
    stopped = work.run(bench.pipeline, QUESTION, going)
    assert stopped.answer is not None and stopped.answer.text == "It"
    assert_whole(work.run(bench.pipeline, QUESTION))
    assert bench.counts["answer"] == 2


# --- every record is that of a run alone ----------------------------------------------------------------------------

HALF = by_id(p1=0.5, p2=0.1, p3=0.45)
CASES: dict[str, Scoring] = {
    "correct": by_id(p1=0.9, p2=0.1, p3=0.9),
    "in doubt": HALF,
    "incorrect": by_id(p1=0.1, p2=0.05, p3=0.15),
    "unreadable": by_id(p1=None, p2=0.5, p3=None),
}
JUDGES = {
    "plain": card(),
    "model": JUDGE,
    "together": replace(JUDGE, batch=5),
    "signals": card("signals"),
}
EXTRACT = {"extract": f'{{"sentences": ["{USEFUL}"]}}'}
TUNED = changed("paper").with_thresholds(0.0, 1.0, 0.2)
PARTIAL = changed("heuristic").with_thresholds(0.0, 1.0)
"""Expands the question, and asks both ways at the same time."""

MANY: tuple[str | Policy, ...] = (*POLICIES, TUNED, PARTIAL, replace(changed("agentic"), grade_top=2))


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("turned", [False, True])
def test_every_record_is_that_of_a_run_alone(case: str, judge: str, turned: bool) -> None:
    """Times, calls and tokens included, though most of it was done for another configuration."""
    options: dict[str, Any] = {"scoring": CASES[case], "judge": JUDGES[judge], "found": numbered(3), "replies": EXTRACT}
    policies = MANY[::-1] if turned else MANY
    bench, time = timed(**options)
    together = shared(bench, *policies, *policies)
    alone = []
    for policy in policies:
        other, _ = timed(**options)
        alone.append(pipeline(other, policy).run(QUESTION))
    for policy, found, again, expected in zip(
        policies, together[: len(alone)], together[len(alone) :], alone, strict=True
    ):
        name = policy if isinstance(policy, str) else policy.name
        assert comparable(found) == comparable(expected), name
        assert comparable(again) == comparable(expected), f"{name}, a second time"
        assert found.seconds == again.seconds == expected.seconds > 0
        assert found.usage == again.usage == expected.usage
    assert time() < sum(trace.seconds for trace in together) / 3, "most of it was done once"


def test_both_lanes_of_a_run_have_the_time_that_they_took() -> None:
    bench, _ = timed("worst-chunk", scoring=lambda one: 0.5, found=numbered(3), replies=EXTRACT)
    one, other = shared(bench, "worst-chunk", "worst-chunk")
    for trace in (one, other):
        assert {step.name: step.seconds for step in trace.steps} == {
            "retrieve": 2.0,
            "grade": 1.5,
            "route": 0.0,
            "score strips": 6 * 0.25,
            "extract": 3.0,
            "rewrite": 1.0,
            "search": 4.0,
            "grade web": 2 * 0.5 + 2 * 0.25,
            "assemble": 0.0,
            "answer": 1.0 + (len(ANSWER.split()) + 1) * 0.125,
        }
        assert trace.seconds == 2.0 + 1.5 + max(4.5, 5.0) + 1.5 + 1.0 + 6 * 0.125
        assert trace.usage == Usage(5, 3 * 20 + 20 + 30, 3 * 5 + 5 + 7)
    assert bench.counts["search"] == bench.counts["rewrite"] == bench.counts["answer"] == 1


def test_passages_graded_by_another_configuration_take_their_time() -> None:
    bench, _ = timed(judge=JUDGE, scoring=by_id(**{f"p{n}": 0.9 for n in range(1, 6)}), found=passages(5))
    work = SharedWork(bench.clock)
    traces = [work.run(bench.under(top_k=top_k), QUESTION) for top_k in (3, 2, 5)]
    seconds = [next(step.seconds for step in trace.steps if step.name == "grade") for trace in traces]
    assert seconds == [1.5, 1.0, 2.5]
    assert [trace.usage.calls for trace in traces] == [3 + 1, 2 + 1, 5 + 1]
    assert bench.counts["grade"] == 5


@pytest.mark.parametrize("known", [(), ("question",), ("expanded",), ("question", "expanded")])
def test_of_two_retrievals_at_the_same_time_the_longer_one_counts(known: Sequence[str]) -> None:
    """2 s for the question, 3 s for the expanded one; whichever of them was made before."""
    alone = timed(PARTIAL, scoring=HALF)[0].pipeline.run(QUESTION)
    queries = {"question": QUESTION, "expanded": alone.rounds[0].retrievals[1].query}
    bench, _ = timed(PARTIAL, scoring=HALF)
    work = SharedWork(bench.clock)
    for name in known:
        work.run(bench.under(policy=changed("rank-weighted")), queries[name])
    trace = work.run(bench.pipeline, QUESTION)
    assert {step.name: step.seconds for step in trace.steps}["retrieve again"] == 3.0
    assert trace.rounds == alone.rounds and trace.seconds == alone.seconds
    assert sorted(query for query, _ in bench.retriever.asked) == sorted(queries.values())


def test_time_never_goes_back() -> None:
    time = Time()
    work = SharedWork(time)
    work.now()
    work.keep("slow", "reply", 3.0)
    work.keep("quick", "reply", 1.0)
    for key in ("slow", "quick"):
        beside = threading.Thread(target=work.known, args=(key,))
        beside.start()
        beside.join()
    assert [work.now(), work.now(), time()] == [3.0, 3.0, 0.0], "both at the same time"
    assert work.known("slow") == ("reply",) and work.now() == 6.0


def test_a_listener_that_takes_its_time_takes_it_once() -> None:
    bench, time = timed(scoring=by_id(p1=0.9, p2=0.9, p3=0.9))
    work, seconds = SharedWork(bench.clock), []
    for _ in range(2):
        diary = Diary()
        diary.wrote = lambda piece: time.work(10.0)  # type: ignore[method-assign]
        trace = work.run(bench.pipeline, QUESTION, Run(diary))
        seconds.append(trace.steps[-1].seconds)
    assert seconds == [1.0 + 6 * 0.125 + 5 * 10.0] * 2


def test_the_pipeline_itself_remembers_nothing() -> None:
    bench = Bench(best=0.9, model=FakeModel())
    SharedWork(bench.clock).run(bench.pipeline, QUESTION)
    once = bench.counts
    bench.pipeline.run(QUESTION)
    assert bench.counts == once + once
    SharedWork(bench.clock).run(bench.pipeline, QUESTION)
    assert bench.counts == once + once + once, "nor does other work"


def test_observers_hear_of_every_run() -> None:
    observer = Diary()
    bench = Bench(best=0.9, model=FakeModel(), observers=(observer,))
    one, other = shared(bench, "paper", "two-signal")
    assert [step.name for step in observer.done] == [step.name for step in (*one.steps, *other.steps)]
    assert one.id != other.id
