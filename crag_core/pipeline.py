"""The order of stages, once.

A stage runs only if the trace does not hold its result yet, so a run that was stopped, that broke off, or that waits
for approval goes on where it was, and a run under other settings reuses every fact that still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from crag_core import stages, writing
from crag_core.errors import CragError, Stopped
from crag_core.protocols import Clock
from crag_core.run import Parts, Result, Run
from crag_core.trace import RunSettings, Trace
from crag_core.types import Passage, Step, StepState, WebOutcome, WebSearch

Stage = Callable[[Trace, Parts, Run], Result | None]

ORDER: tuple[tuple[str, Stage], ...] = (
    ("retrieve", stages.retrieve),
    ("grade", stages.grade),
    ("score strips", stages.score_strips),
    ("route", stages.route),
    ("extract", stages.extract),
    ("rewrite", stages.rewrite),
    ("search", stages.search),
    ("grade web", stages.grade_web),
    ("assemble", stages.assemble),
)
ANSWER = "answer"
STAGE_NAMES = (*(name for name, _ in ORDER), ANSWER)


_SETTLED = (WebOutcome.USED, WebOutcome.EMPTY, WebOutcome.APPROVED, WebOutcome.REFUSED)
_DONE = (StepState.DONE, StepState.WAITING)


class Pipeline:
    """Runs questions under one `RunSettings`. Holds no state of a run: one pipeline serves many threads."""

    def __init__(
        self, parts: Parts, settings: RunSettings, *, clock: Clock, now: Callable[[], str], new_id: Callable[[], str]
    ) -> None:
        self.parts = parts
        self.settings = settings
        self._clock = clock
        self._now = now
        self._new_id = new_id

    def begin(self, question: str, passages: tuple[Passage, ...] | None = None) -> Trace:
        """A new trace; with `passages` when something else has retrieved them already."""
        trace = Trace(self._new_id(), self._now(), question, self.settings)
        if passages is None:
            return trace
        return replace(trace, passages=passages, signals=self.parts.meter.measure(question, passages))

    def run(self, question: str, run: Run | None = None) -> Trace:
        """The whole way from question to answer. Never raises a `CragError`: the trace's last step tells a failure."""
        return self.resume(self.begin(question), run)

    def resume(self, trace: Trace, run: Run | None = None) -> Trace:
        """Do what is still missing, up to the answer."""
        run = run or Run()
        trace, goes_on = self._advance(trace, run)
        return self._step(ANSWER, writing.write, trace, run)[0] if goes_on else trace

    def correct(self, trace: Trace, run: Run | None = None) -> Trace:
        """Do what is still missing, up to the assembled context; no answer is written."""
        return self._advance(trace, run or Run())[0]

    def stream_answer(self, trace: Trace, run: Run | None = None) -> Iterator[str | Trace]:
        """The pieces of the answer to a corrected trace as they come, and the finished trace last."""
        start = self._clock()
        for piece in writing.stream(trace, self.parts, run or Run()):
            yield _recorded(trace, ANSWER, piece, self._clock() - start)[0] if isinstance(piece, Result) else piece

    def adopt(self, trace: Trace) -> Trace:
        """A new trace with the facts of `trace` that hold under this pipeline's settings, to be resumed.

        The steps that made them are kept with them. With another embedding model or number of passages nothing holds.
        """
        if _retrieval(trace.settings) != _retrieval(self.settings):
            return self.begin(trace.question)
        same_judge = _judge(trace.settings) == _judge(self.settings)
        same_scorer = trace.settings.strip_evaluator.name == self.settings.strip_evaluator.name
        web = _still_holding(trace.web, same_judge and same_scorer)
        held = {"retrieve": True, "grade": same_judge, "score strips": same_scorer, "extract": True}
        held |= {"rewrite": web is not None, "search": web is not None, "grade web": bool(web and web.grades)}
        return replace(
            trace,
            id=self._new_id(),
            created=self._now(),
            settings=self.settings,
            grades=trace.grades if same_judge else None,
            strips=trace.strips if same_scorer else None,
            web=web,
            decision=None,
            context=None,
            answer=None,
            steps=tuple(step for step in trace.steps if held.get(step.name) and step.state in _DONE),
        )

    def _advance(self, trace: Trace, run: Run) -> tuple[Trace, bool]:
        for name, stage in ORDER:
            trace, goes_on = self._step(name, stage, trace, run)
            if not goes_on or is_waiting(trace):
                return trace, False
        return trace, True

    def _step(self, name: str, stage: Stage, trace: Trace, run: Run) -> tuple[Trace, bool]:
        """Run one stage, time it and record it: (the trace, may the next stage run)."""
        run.listener.started(name)
        start = self._clock()
        try:
            if run.cancel.is_set():
                raise Stopped("Stopped by you.")
            result = stage(trace, self.parts, run)
        except Stopped as error:
            result = Result({}, error.message, state=StepState.STOPPED)
        except CragError as error:
            result = Result({}, error.message, state=StepState.FAILED, hint=error.hint)
        if result is None:
            return _without_stop(trace, name), True
        trace, step = _recorded(trace, name, result, self._clock() - start)
        run.listener.finished(step, trace)
        return trace, step.state not in (StepState.FAILED, StepState.STOPPED)


def raise_failure(trace: Trace) -> None:
    """Raise a `CragError` when the run broke off or waits; for callers who have no screen to show the trace on."""
    if trace.failure:
        raise CragError(f"Step {trace.failure.name!r} failed: {trace.failure.summary}", hint=trace.failure.hint)
    if is_waiting(trace):
        raise CragError(
            "This run waits for approval of its web query, and nobody can be asked here.",
            hint='Build the pipeline with web="auto" or web="off".',
        )


def is_waiting(trace: Trace) -> bool:
    """Whether the run waits for the user's word on a web query."""
    return trace.web is not None and trace.web.outcome is WebOutcome.PENDING


def approve(trace: Trace, query: str) -> Trace:
    """A waiting trace with the exact query that may leave the machine; resume it to search."""
    web = _waiting_search(trace)
    by = web.query_by if query == web.query else "edited by you"
    return replace(trace, web=replace(web, outcome=WebOutcome.APPROVED, query=query, query_by=by))


def refuse(trace: Trace) -> Trace:
    """A waiting trace whose search was refused; resume it to go on without the web."""
    return replace(trace, web=replace(_waiting_search(trace), outcome=WebOutcome.REFUSED))


def _waiting_search(trace: Trace) -> WebSearch:
    if trace.web is None or not is_waiting(trace):
        raise ValueError("this run does not wait for approval")
    return trace.web


def _retrieval(settings: RunSettings) -> tuple[str, int]:
    return settings.embedding, settings.top_k


def _judge(settings: RunSettings) -> tuple[str, ...]:
    """Who graded: grades by a model hold for that model and its prompt only."""
    card = settings.evaluator
    return (card.name, settings.writer, settings.prompts) if card.calls_model else (card.name,)


def _still_holding(web: WebSearch | None, same_scores: bool) -> WebSearch | None:
    """An answered search is kept, without its scores if others made them, and so is the user's word on a query."""
    if web is None or web.outcome not in _SETTLED:
        return None
    return web if same_scores else replace(web, grades=(), strips=())


def _without_stop(trace: Trace, name: str) -> Trace:
    """A stop that came just before a stage with nothing to do is over once the run goes on."""
    last = trace.steps[-1] if trace.steps else None
    if last and last.name == name and last.state is StepState.STOPPED:
        return replace(trace, steps=trace.steps[:-1])
    return trace


def _recorded(trace: Trace, name: str, result: Result, seconds: float) -> tuple[Trace, Step]:
    """The trace with the result's changes and a step at its end.

    The broken attempt that this step completes gives way to it, with its cost carried over; a stage that was skipped
    before is not told twice.
    """
    step = Step(name, result.summary, result.state, seconds, result.usage, result.hint)
    steps = trace.steps
    last = steps[-1] if steps else None
    if last and last.name == name and last.state is not StepState.DONE:
        step = replace(step, usage=last.usage + step.usage, seconds=last.seconds + step.seconds)
        steps = steps[:-1]
    if not (step.state is StepState.SKIPPED and any(old.name == name for old in steps)):
        steps = (*steps, step)
    return replace(trace, **result.changes, steps=steps), step
