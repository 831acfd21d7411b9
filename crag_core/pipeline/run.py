"""A run: its parts and settings, its listeners, cancellation, and the result of a stage."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from threading import Event, Lock
from typing import Any, Protocol, Self, TypeVar

from crag_core.base.concurrency.cancellation import POLL_SECONDS
from crag_core.base.errors import BadRecord
from crag_core.base.prompts.messages import Prompts, shipped
from crag_core.base.protocols import (
    Cancel,
    Clock,
    Evaluator,
    LanguageModel,
    Messages,
    PageReader,
    Retriever,
    StripEvaluator,
    SupportMeter,
    WebSearcher,
)
from crag_core.base.types.passages import Logged, Passage
from crag_core.base.types.steps import Step, StepState, Usage
from crag_core.decision.signals import SignalMeter
from crag_core.trace.summary import Ending
from crag_core.trace.trace import RunSettings, Trace

VERSION = "0.1.0"

RUN_ID: ContextVar[str] = ContextVar("crag_run", default="")
"""The run that is under way here, in whatever thread or task works for it; "": none."""


LONGEST_QUESTION = 2000  # characters of a question, wherever it comes from; it goes into every prompt of a run


class WebMode(StrEnum):
    AUTO = "auto"
    ASK = "ask"
    OFF = "off"


@dataclass(frozen=True)
class Attempt:
    """One attempt at a run, over: the record that it began with, the one that it left, and how it ended.

    `bug` names the type of the error, none of the project's own, that broke it; "": none did.
    """

    since: Trace
    trace: Trace
    ending: Ending
    bug: str = ""

    @property
    def is_first(self) -> bool:
        """Of its run; False: it went on with what had broken off, was stopped or waited, or added an opinion."""
        return all(step.taken_over for step in self.since.steps)


class Listener:
    """Receives the events of a run, in the thread that runs it. Override what you need.

    For every `opened` there is one `ended`, however the attempt ends. A step that finds nothing to do is `started` and
    never `finished`.
    """

    def opened(self, trace: Trace) -> None: ...
    def started(self, name: str) -> None: ...
    def progressed(self, name: str, done: int, total: int) -> None: ...
    def finished(self, step: Step, trace: Trace) -> None: ...
    def wrote(self, piece: str) -> None: ...
    def ended(self, attempt: Attempt) -> None: ...


@dataclass(frozen=True)
class Parts:
    """What a pipeline is made of. `model` None: no language model, answers are quotations. What a `NotedModel` is
    asked, here or by an evaluator, stands in the record.

    `synonyms` serve to expand a question; `pause` remembers when this user last searched the web. `support` None: what
    stands behind the sentences of an answer is not measured. `page_reader` None: of the web, snippets alone are used.
    """

    evaluator: Evaluator
    strip_evaluator: StripEvaluator
    meter: SignalMeter
    retriever: Retriever | None = None
    model: LanguageModel | None = None
    searcher: WebSearcher | None = None
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pause: Cooldown | None = None
    support: SupportMeter | None = None
    prompts: Prompts = field(default_factory=shipped)
    page_reader: PageReader | None = None


@dataclass(frozen=True)
class Result:
    changes: Mapping[str, Any]
    summary: str
    usage: Usage = field(default_factory=Usage)
    state: StepState = StepState.DONE
    hint: str = ""
    error: str = ""
    by: str = ""
    first_word: float | None = None


@dataclass(frozen=True)
class Run:
    listener: Listener = field(default_factory=Listener)
    cancel: Cancel = field(default_factory=Event)
    clock: Clock = time.monotonic


class QuestionRunner(Protocol):
    """Runs questions under one `RunSettings`; the query engine is one. A failure is told by a record's last step.

    `grade` retrieves and grades all passages, `score_strips` scores the sentences of some. `hiding`, `over` and
    `with_parts` are as in `Pipeline`.
    """

    @property
    def settings(self) -> RunSettings: ...
    @property
    def parts(self) -> Parts: ...
    def run(self, question: str, run: Run | None = None) -> Trace: ...
    def grade(self, question: str, run: Run | None = None) -> Trace: ...
    def score_strips(self, trace: Trace, passages: tuple[Passage, ...], run: Run | None = None) -> Trace: ...
    def hiding(self, text: str) -> Self: ...
    def over(self, passages: tuple[Passage, ...], logged: Logged | None = None) -> Self: ...
    def with_parts(self, **changes: Any) -> Self: ...


class Cooldown:
    """When one user last searched the web, for policies that want some time between two. Safe between threads."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._last: float | None = None
        self._lock = Lock()

    def left(self, seconds: float) -> float:
        """Seconds until the next search is allowed, when at least `seconds` must lie between two; 0.0: now."""
        with self._lock:
            return 0.0 if self._last is None else max(0.0, self._last + seconds - self._clock())

    def note(self) -> None:
        with self._lock:
            self._last = self._clock()

    def forget(self) -> None:
        with self._lock:
            self._last = None


class TimedCancel(Event):
    """A cancel flag that is set when its parent is, or `seconds` after it was made (None: never)."""

    def __init__(self, parent: Cancel, seconds: float | None) -> None:
        super().__init__()
        self.parent = parent
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    def is_set(self) -> bool:
        return self.parent.is_set() or time.monotonic() >= self._end

    def wait(self, timeout: float | None = None) -> bool:
        """As of an event; looked at every twentieth of a second."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self.is_set() and (left := end - time.monotonic()) > 0:
            self.parent.wait(min(left, POLL_SECONDS))
        return self.is_set()


class _Read(Protocol):
    @property
    def cause(self) -> str: ...


_Found = TypeVar("_Found", bound=_Read)


def ask_twice(
    model: LanguageModel,
    prompts: Prompts,
    asked: Messages,
    read: Callable[[str], _Found],
    cancel: Cancel,
    schema: dict[str, Any],
) -> tuple[_Found, tuple[str, ...], Usage]:
    """What is read of the model's reply, its replies and their cost.

    One that cannot be read, and so has a cause, is asked for once more, with what was wrong.
    """
    replies: list[str] = []
    usage, messages = Usage(), asked
    while True:
        reply = model.complete(messages, cancel, schema)
        found, usage = read(reply.text), usage + reply.usage
        replies.append(reply.text)
        if not found.cause or len(replies) == 2:
            return found, tuple(replies), usage
        messages = prompts.again(asked, reply.text, found.cause)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_question(question: str) -> None:
    if len(question) > LONGEST_QUESTION:
        raise BadRecord(
            f"Expected a question of at most {LONGEST_QUESTION:,} characters, found {len(question):,}.",
            hint="Ask it in fewer words; a long text is better added as a document.",
        )
