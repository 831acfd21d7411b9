"""Notes what a language model is asked during a step of a run, and what it replies, for the record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, cast

from crag_core.base.concurrency.cancellation import SENT
from crag_core.base.errors import CragError, NoLogProbabilities
from crag_core.base.protocols import Cancel, LanguageModel, Messages, Reply
from crag_core.base.types.steps import ModelCall, StepName, Usage
from crag_core.trace.grounding.quoted_answer import why_cut
from crag_core.trace.trace import Trace

MOST_CHARACTERS = 400_000  # of messages and replies in one record; of calls beyond, it holds step and cost alone
_NOTE: ContextVar[tuple[StepName, list[ModelCall]] | None] = ContextVar("crag_model_calls", default=None)


@contextmanager
def noted(step: StepName) -> Iterator[list[ModelCall]]:
    """The calls of this step: those of every `NotedModel` that are made inside, in whatever part of it."""
    calls: list[ModelCall] = []
    token = _NOTE.set((step, calls))
    try:
        yield calls
    finally:
        _NOTE.reset(token)


def with_calls(trace: Trace, calls: Sequence[ModelCall]) -> Trace:
    room = MOST_CHARACTERS - sum(map(_size, trace.calls))
    kept = list(trace.calls)
    for call in calls:
        fits = _size(call) <= room
        kept.append(call if fits else replace(call, messages=(), reply=""))
        room -= _size(kept[-1])
    return replace(trace, calls=tuple(kept)) if calls else trace


def _size(call: ModelCall) -> int:
    return len(call.reply) + sum(len(text) for _, text in call.messages)


class NotedModel:
    """Asks `model`, and notes each call for the step under way, if there is one; one that was never sent costs none."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.name = model.name

    def complete(self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None) -> Reply:
        with self._noting((messages,)) as came:
            came.append(self._model.complete(messages, cancel, schema))
        return cast(Reply, came[0])

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: dict[str, Any] | None = None
    ) -> list[Reply | Exception]:
        with self._noting(chats) as came:
            came += self._model.complete_all(chats, cancel, schema)
        return came

    def first_tokens(self, chats: Sequence[Messages], cancel: Cancel) -> list[Reply | Exception]:
        with self._noting(chats) as came:
            came += self._model.first_tokens(chats, cancel)
        return came

    def stream(self, messages: Messages, cancel: Cancel) -> Iterator[str | Usage]:
        pieces: list[str] = []
        usage, broken = Usage(), ""
        replies = self._model.stream(messages, cancel)
        try:
            with self._counting() as count:
                first = next(replies, "")
            for piece in itertools.chain((first,), replies):
                if isinstance(piece, Usage):
                    usage = piece
                else:
                    pieces.append(piece)
                yield piece
        except CragError as error:
            broken = error.message
            raise
        finally:
            usage = replace(usage, calls=usage.calls or count(messages))
            _note(messages, Reply("".join(pieces), usage), broken)

    @contextmanager
    def _noting(self, chats: Sequence[Messages]) -> Iterator[list[Reply | Exception]]:
        """Notes what is put into the list that it gives, one a chat, or the error that came instead of all."""
        came: list[Reply | Exception] = []
        try:
            with self._counting() as count:
                yield came
        except CragError as error:
            told = chats[:1] if isinstance(error, NoLogProbabilities) else chats
            came = [error] * len(told)
            raise
        finally:
            for messages, one in zip(chats, came, strict=False):
                _note(messages, one, count=count(messages))

    @contextmanager
    def _counting(self) -> Iterator[Callable[[Messages], int]]:
        """Gives how often a chat was sent, in here; once, where the model does not tell."""
        chats: list[Messages] = []
        is_told = getattr(self._model, "tells_sent", False)
        token = SENT.set(chats)
        try:
            yield lambda messages: sum(one is messages for one in chats) if is_told else 1
        finally:
            SENT.reset(token)


def _note(messages: Messages, came: Reply | Exception, broken: str = "", count: int = 1) -> None:
    """`broken` says why a reply is not whole, `count` how often one that failed was sent."""
    noted_calls = _NOTE.get()
    if noted_calls is None:
        return
    step, calls = noted_calls
    broken = broken or (why_cut(came.usage) if isinstance(came, Reply) else "")
    if isinstance(came, Exception):
        broken = came.message if isinstance(came, CragError) else type(came).__name__
        came = Reply("", Usage(count))
    asked = tuple((role, text) for role, text in messages)
    calls.append(ModelCall(step.value, asked, came.text, came.usage, broken))
