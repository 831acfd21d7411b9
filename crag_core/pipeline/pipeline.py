"""The pipeline: the order of the stages, once.

Open a run and call `retrieve`, `grade`, `correct` and `write` in order; the query engine of `crag_core.llamaindex` does
so, with retriever, postprocessor and synthesizer.

A stage runs only if the trace does not hold its result yet, so a run that was stopped, that broke off, or that waits
for approval goes on where it was, and a run under other settings reuses every fact that still holds.

condense -> classify -> retrieve -> (grade -> judge together -> route -> retrieve again)* -> score strips, extract |
rewrite, search, read pages -> grade web -> consolidate -> assemble -> answer -> check answer, where
the two lanes beside "|" go on at the same time, or one after the other where the web is asked only if refinement leaves
little (`web = "when-few"`). Nothing is retrieved before a question of a conversation is understood.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from crag_core.base import errors
from crag_core.base.errors import CragError, Stopped
from crag_core.base.protocols import Clock, RetrievalResult, Retriever
from crag_core.base.types.passages import Logged, Passage
from crag_core.base.types.questions import FollowUp
from crag_core.base.types.steps import ModelCall, Step, StepName, StepState, Usage
from crag_core.pipeline import answer_stages, condense, grading, page_stages, stages, web_stages
from crag_core.pipeline.answer_stages import check
from crag_core.pipeline.model_calls import noted, with_calls
from crag_core.pipeline.retrieve_again import retrieve_again
from crag_core.pipeline.run import RUN_ID, Attempt, Listener, Parts, Result, Run, check_question
from crag_core.pipeline.web_stages import is_waiting
from crag_core.trace.edits import edited
from crag_core.trace.facts import still_holding
from crag_core.trace.grounding.quoted_answer import left_out
from crag_core.trace.injection_scan import remaining_suspicions, with_suspicions
from crag_core.trace.reroute import decision_path_of, with_room
from crag_core.trace.summary import Ending, ending_of
from crag_core.trace.trace import RunSettings, Trace

Stage = Callable[[Trace, Parts, Run], Result | None]

Stages = tuple[tuple[StepName, Stage], ...]

UNDERSTANDING: Stages = ((StepName.CONDENSE, condense.condense),)
FIRST: Stages = ((StepName.CLASSIFY, stages.classify), (StepName.RETRIEVE, stages.retrieve))
ITERATION: Stages = (
    (StepName.GRADE, grading.grade),
    (StepName.JUDGE_TOGETHER, grading.judge_together),
    (StepName.ROUTE, stages.route),
    (StepName.RETRIEVE_AGAIN, retrieve_again),
)
REFINING: Stages = ((StepName.SCORE_STRIPS, stages.score_strips), (StepName.EXTRACT, stages.extract))
SEARCHING: Stages = (
    (StepName.REWRITE, web_stages.rewrite),
    (StepName.SEARCH, web_stages.search),
    (StepName.READ_PAGES, page_stages.read_pages),
)
LAST: Stages = (
    (StepName.GRADE_WEB, web_stages.grade_web),
    (StepName.CONSOLIDATE, answer_stages.consolidate),
    (StepName.ASSEMBLE, stages.assemble),
)


_BROKEN = (StepState.FAILED, StepState.STOPPED)


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Runs questions under one `RunSettings`. Holds no state of a run: one pipeline serves many threads.

    `observers` hear of every run, besides the listener of each; not of progress and pieces of an answer. `logged` goes
    into the records of questions that were retrieved for elsewhere.
    """

    parts: Parts
    settings: RunSettings
    clock: Clock
    now: Callable[[], str]
    new_id: Callable[[], str]
    observers: tuple[Listener, ...] = ()
    logged: Logged | None = None

    def with_parts(self, **changes: Any) -> Pipeline:
        return replace(self, parts=replace(self.parts, **changes))

    def hiding(self, text: str) -> Pipeline:
        """The same for questions that are asked as if no passage with this text were indexed; "": all are."""
        retriever = self.parts.retriever
        return self.with_parts(retriever=retriever.hiding(text)) if text and retriever else self

    def over(self, retriever: Retriever, passages: tuple[Passage, ...], logged: Logged) -> Pipeline:
        """The same for questions that were retrieved for elsewhere: `retriever` gives `passages`, and nothing else.

        No other round of retrieval is asked for, and the budget of the answer holds them.
        """
        settings = replace(self.settings, policy=with_room(self.settings.policy.without_retrieval(), passages))
        return replace(self.with_parts(retriever=retriever), settings=settings, logged=logged)

    def begin(
        self,
        question: str,
        passages: tuple[Passage, ...] | None = None,
        follow_up: FollowUp | None = None,
        *,
        may_ask_again: bool = False,
        agreement: float | None = None,
    ) -> Trace:
        """A new trace; with `passages` when something else has retrieved them already, and alone can do so.

        `follow_up`: the question is one of a conversation. `may_ask_again`: whoever retrieved them is told what the
        policy would retrieve next. `agreement` is that of the passages, None: not known. Raises `BadRecord` for a
        question that is too long.
        """
        check_question(question)
        trace = Trace(self.new_id(), self.now(), question, self.settings, logged=self.logged)
        if follow_up is not None and condense.needed(follow_up, self.parts.meter.stop_words):
            trace = replace(trace, question=follow_up.question or question, follow_up=follow_up)
        if passages is None:
            return trace
        policy = self.settings.policy if may_ask_again else self.settings.policy.without_retrieval()
        policy = with_room(policy, passages)
        settings = replace(self.settings, policy=policy)
        signals = self.parts.meter.measure(question, passages, agreement)
        return with_suspicions(replace(trace, settings=settings, passages=passages, signals=signals), trace)

    def begin_grading(self, question: str) -> Trace:
        settings = replace(self.settings, policy=self.settings.policy.for_grading())
        return Trace(self.new_id(), self.now(), question, settings, logged=self.logged)

    def stream_answer(self, trace: Trace, run: Run | None = None) -> Iterator[str | Trace]:
        """The pieces of the answer to a corrected trace as they come, and the finished trace last."""
        # In a context of its own: whoever takes the pieces must not find itself in this run between two of them.
        context = copy_context()
        pieces = self._stream_answer(trace, run or Run())
        try:
            while (piece := context.run(next, pieces, None)) is not None:
                yield piece
        finally:
            context.run(pieces.close)

    def _stream_answer(self, trace: Trace, run: Run) -> Generator[str | Trace, None, None]:
        start = self.clock()
        with self.open(trace, run) as record, noted(StepName.ANSWER) as calls:
            for observer in self.observers:
                observer.started(StepName.ANSWER)
            for piece in answer_stages.stream(edited(trace), self.parts, replace(run, clock=self.clock)):
                if isinstance(piece, str):
                    yield piece
                    continue
                changed = with_calls(_changed(trace, piece), calls)
                made = _costed(piece, calls)
                record.trace, step = _recorded(changed, StepName.ANSWER, made, self.clock() - start)
                self._tell(step, record.trace)
                if step.state not in _BROKEN:
                    record.check()
                yield record.trace

    def score_strips(self, trace: Trace, passages: tuple[Passage, ...], run: Run | None = None) -> Trace:
        score = partial(stages.score_strips_of, passages=passages)
        return self._run_stages(((StepName.SCORE_STRIPS, score),), trace, run)

    def second_opinion(self, trace: Trace, run: Run | None = None) -> Trace:
        """The same record with what this pipeline's evaluator says of its passages as one more `Opinion`."""
        if trace.settings.same_judge(self.settings):
            return trace
        ask = partial(grading.second_opinion, settings=self.settings)
        return self._run_stages(((StepName.SECOND_OPINION, ask),), trace, run)

    def adopt(self, trace: Trace, as_new: bool = False) -> Trace:
        """A trace with the facts of `trace` that hold under this pipeline's settings, to be resumed.

        One that broke off, was stopped or waits goes on as the same run, under its id. From one that came to its end,
        and `as_new` from every one, a run of its own is made, with steps that are marked as taken over.

        The steps that made the facts are kept with them, and so are its edits. Where nothing holds, as with another
        embedding model or number of passages, a new run begins.
        """
        held = still_holding(trace, self.settings)
        if held is None:
            return self._again(trace)
        is_same_run = trace.is_unfinished and not as_new
        # What a broken step cost is carried over to the one that completes it.
        adopted = replace(
            held,
            id=trace.id if is_same_run else self.new_id(),
            created=trace.created if is_same_run else self.now(),
            steps=held.steps if is_same_run else tuple(replace(step, taken_over=True) for step in held.steps),
        )
        return replace(adopted, suspicions=remaining_suspicions(adopted))

    def _again(self, trace: Trace) -> Trace:
        steps = tuple(replace(one, taken_over=True) for one in trace.steps if one.name == StepName.CONDENSE)
        calls = tuple(call for call in trace.calls if call.step == StepName.CONDENSE)
        return replace(self.begin(trace.question), follow_up=trace.follow_up, steps=steps, calls=calls)

    @contextmanager
    def open(self, trace: Trace, run: Run | None = None) -> Iterator[OpenRun]:
        """One attempt at a run: each listener hears of its beginning, and once of its end, whatever happens."""
        run = run or Run()
        record, ending, bug = OpenRun(self, trace, run), None, ""
        listeners = (run.listener, *self.observers)
        token = RUN_ID.set(trace.id)
        try:
            for listener in listeners:
                listener.opened(trace)
            yield record
        except (GeneratorExit, KeyboardInterrupt):  # nobody takes the rest of the answer; Ctrl-C
            ending = Ending.STOPPED
            raise
        except BaseException as error:
            ending, bug = Ending.FAILED, type(error).__name__
            raise
        finally:
            attempt = Attempt(trace, record.trace, ending or ending_of(record.trace), bug)
            for listener in listeners:
                listener.ended(attempt)
            RUN_ID.reset(token)

    def _run_stages(self, todo: Stages, trace: Trace, run: Run | None) -> Trace:
        with self.open(trace, run) as record:
            record.run_stages(todo)
        return record.trace

    def _step(self, name: StepName, stage: Stage, record: OpenRun, run: Run) -> bool:
        """Run one stage, time it and record it: may the next one run?"""
        for listener in (run.listener, *self.observers):
            listener.started(name)
        start = self.clock()
        with noted(name) as calls:
            result = self._result(stage, record.trace, run)
        with record.lock:  # the other lane may have recorded something meanwhile
            if result is None or _is_skipped_again(record.trace, result):
                record.trace = _without_break(record.trace, name)
                return True
            result, changed = _costed(result, calls), with_calls(_changed(record.trace, result), calls)
            record.trace, step = _recorded(changed, name, result, self.clock() - start)
            run.listener.finished(step, record.trace)
            self._tell(step, record.trace)
        return step.state not in _BROKEN

    def _result(self, stage: Stage, trace: Trace, run: Run) -> Result | None:
        try:
            if run.cancel.is_set():
                raise Stopped()
            return stage(trace, self.parts, replace(run, clock=self.clock))
        except Stopped as error:
            return Result({}, error.message, state=StepState.STOPPED)
        except CragError as error:
            return Result({}, error.message, state=StepState.FAILED, hint=error.hint, error=type(error).__name__)

    def _tell(self, step: Step, trace: Trace) -> None:
        for observer in self.observers:
            observer.finished(step, trace)


@dataclass(eq=False)
class OpenRun:
    """A run under way: its trace as it grows, from one lane or two. Each method does what is still missing.

    `can_continue` turns False where a step fails, is stopped, or waits for approval; later stages do nothing then.
    """

    pipeline: Pipeline
    trace: Trace
    run: Run
    can_continue: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    def retrieve(self) -> None:
        """The first retrieval, once the question is understood, and sorted if the policy wants that."""
        if condense.is_open(self.trace):
            self.run_stages(UNDERSTANDING)
        self.can_continue = self.can_continue and not condense.holds_back(self.trace)
        asks = self.trace.settings.policy.classifies and not self.trace.is_unsure
        self.run_stages(FIRST if asks else FIRST[1:])

    def replace_passages(self, found: RetrievalResult) -> None:
        if self.trace.passages in (None, found.passages) or not self.can_continue:
            return
        signals = self.pipeline.parts.meter.measure(self.trace.question, found.passages, found.agreement)
        self.trace = with_suspicions(replace(self.trace, passages=found.passages, signals=signals), self.trace)

    def raise_token_budget(self) -> None:
        """Whoever retrieved may have longer passages than this project cuts: the budget of the answer holds them."""
        settings = self.trace.settings
        policy = with_room(settings.policy, self.trace.passages or ())
        self.trace = replace(self.trace, settings=replace(settings, policy=policy))

    def grade(self) -> None:
        self.run_stages(self._iteration())

    def correct(self) -> None:
        """Up to the assembled context. By a question that nobody is sure of nothing is graded, and no web searched."""
        if self.trace.is_unsure:
            self.run_stages((ITERATION[3], REFINING[0], LAST[-1]))
            return
        looks_again = True
        while self.can_continue and looks_again:  # until no decision asks for another round
            rounds, grades = self.trace.rounds, self.trace.grades
            self.run_stages(self._iteration())
            trace = self.trace
            is_open = trace.grades != grades and bool(decision_path_of(trace, trace.settings.policy).ungraded)
            looks_again = trace.rounds != rounds or is_open
        if self.trace.refines_first:
            self.run_stages(REFINING + SEARCHING)
        else:
            self._run_both(REFINING, SEARCHING)
        self.can_continue = self.can_continue and not is_waiting(self.trace)
        self.run_stages(LAST if self.trace.settings.policy.has("consolidate") else (LAST[0], LAST[-1]))

    def write(self) -> None:
        # from the record as its edits have it, the scores of what it quotes included
        self._answer(lambda trace, parts, run: answer_stages.write(edited(trace), parts, run))

    def answered(self, text: str, writer: str) -> None:
        self._answer(lambda trace, parts, run: answer_stages.written_by(trace, text, writer))

    def _answer(self, stage: Stage) -> None:
        self.run_stages(((StepName.ANSWER, stage),))
        if self.can_continue:
            self.check()

    def check(self) -> None:
        """A stop ends a model's judging of the answer and breaks nothing: the answer is there."""
        stage = lambda trace, parts, _: check(trace, parts, self.run)  # noqa: E731
        self.pipeline._step(StepName.CHECK_ANSWER, stage, self, Run(self.run.listener))

    def _iteration(self) -> Stages:
        policy = self.trace.settings.policy
        return tuple(stage for stage in ITERATION if policy.judges_together or stage[0] != StepName.JUDGE_TOGETHER)

    def run_stages(self, todo: Stages) -> None:
        self.can_continue = self.can_continue and self._all(todo)

    def _all(self, todo: Stages) -> bool:
        return all(self.pipeline._step(name, stage, self, self.run) for name, stage in todo)

    def _run_both(self, one: Stages, other: Stages) -> None:
        """Two lanes at the same time; each ends where it fails, and the other still comes to its own end."""
        if not self.can_continue:
            return
        with ThreadPoolExecutor(max_workers=1) as thread:
            beside = thread.submit(copy_context().run, self._all, other)
            can_continue = self._all(one)
            self.can_continue = beside.result() and can_continue


def raise_failure(trace: Trace) -> None:
    """Raise when the run broke off, with the type of what broke it, or waits; for callers without a screen."""
    if trace.failure:
        failure = trace.failure
        kind = errors.kind_named(failure.error)
        raise kind(f"Step {failure.name!r} failed: {failure.summary}", hint=failure.hint)
    if is_waiting(trace):
        raise CragError(
            "This run waits for approval of its web query, or of pages to read, and nobody can be asked here.",
            hint='Build the pipeline with web="auto" or web="off".',
        )


def _without_break(trace: Trace, name: StepName) -> Trace:
    """A break at a stage that now has nothing to do is over."""
    if name == StepName.SECOND_OPINION:
        return trace
    steps = tuple(step for step in trace.steps if not (step.name == name and step.state in _BROKEN))
    return trace if len(steps) == len(trace.steps) else replace(trace, steps=steps)


def _is_skipped_again(trace: Trace, result: Result) -> bool:
    if result.state is not StepState.SKIPPED or result.changes or result.error:
        return False
    return any((old.state, old.summary) == (result.state, result.summary) for old in trace.steps)


def _changed(trace: Trace, result: Result) -> Trace:
    """With the result's changes, and what is suspicious in new passages: looking for it is the step's time."""
    # What stands behind an answer goes with it.
    changes = ({"support": None} if "answer" in result.changes else {}) | dict(result.changes)
    return with_suspicions(replace(trace, **changes), trace)


def _costed(result: Result, calls: Sequence[ModelCall]) -> Result:
    return replace(result, usage=sum((call.usage for call in calls), Usage())) if calls else result


def _recorded(trace: Trace, name: StepName, result: Result, seconds: float) -> tuple[Trace, Step]:
    """The trace with a step at its end.

    The attempt that this step completes, broken, waiting or cut, gives way to it, with its time and its cost, unless
    that was another run's. Of second opinions each may be another evaluator's, so all stay.
    """
    summary = " ".join(filter(None, (result.summary, left_out(result.usage))))
    step = Step(
        name.value, summary, result.state, seconds, result.usage, result.hint, result.error, by=result.by,
        first_word=result.first_word,
    )  # fmt: skip
    gives_way = () if name == StepName.SECOND_OPINION else (*_BROKEN, StepState.WAITING)
    before = [old for old in trace.steps if old.name == name and (old.state in gives_way or name == StepName.ANSWER)]
    for old in before:
        if not old.taken_over:
            step = replace(step, usage=old.usage + step.usage, seconds=old.seconds + step.seconds)
    steps = tuple(old for old in trace.steps if old not in before)
    return replace(trace, steps=(*steps, step)), step
