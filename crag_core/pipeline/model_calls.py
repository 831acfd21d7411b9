"""Notes what a language model is asked during a step of a run, and what it replies, for the record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from crag_core.base.errors import CragError, NoLogProbabilities
from crag_core.base.protocols import Cancel, LanguageModel, Messages, Reply
from crag_core.base.types.steps import ModelCall, StepName, Usage
from crag_core.trace.grounding.quoted_answer import why_cut
from crag_core.trace.trace import Trace

MOST_CHARACTERS = 400_000
"""Of messages and replies in one record; of calls beyond, it holds step and cost alone."""

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
    """The record with more calls, as far as there is room for what they said."""
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
    """Asks `model`, and notes each call for the step under way, if there is one.

    The messages are those that were asked for. A server's model may send less of their evidence, so that it fits: then
    the usage tells how much was cut.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.name = model.name

    def complete(self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None) -> Reply:
        try:
            reply = self._model.complete(messages, cancel, schema)
        except CragError as error:
            _note(messages, error)
            raise
        _note(messages, reply)
        return reply

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: dict[str, Any] | None = None
    ) -> list[Reply | Exception]:
        try:
            replies = self._model.complete_all(chats, cancel, schema)
        except CragError as error:
            for messages in chats:
                _note(messages, error)
            raise
        for messages, reply in zip(chats, replies, strict=True):
            _note(messages, reply)
        return replies

    def first_tokens(self, chats: Sequence[Messages], cancel: Cancel) -> list[Reply | Exception]:
        try:
            replies = self._model.first_tokens(chats, cancel)
        except CragError as error:
            for messages in chats[:1] if isinstance(error, NoLogProbabilities) else chats:
                _note(messages, error)
            raise
        for messages, reply in zip(chats, replies, strict=True):
            _note(messages, reply)
        return replies

    def stream(self, messages: Messages, cancel: Cancel) -> Iterator[str | Usage]:
        pieces: list[str] = []
        usage, broken = Usage(calls=1), ""
        try:
            for piece in self._model.stream(messages, cancel):
                if isinstance(piece, Usage):
                    usage = piece
                else:
                    pieces.append(piece)
                yield piece
        except CragError as error:
            broken = error.message
            raise
        finally:
            _note(messages, Reply("".join(pieces), usage), broken)


def _note(messages: Messages, came: Reply | Exception, broken: str = "") -> None:
    """`broken` says why a reply is not whole."""
    under_way = _NOTE.get()
    if under_way is None:
        return
    step, calls = under_way
    broken = broken or (why_cut(came.usage) if isinstance(came, Reply) else "")
    if isinstance(came, Exception):
        broken = came.message if isinstance(came, CragError) else type(came).__name__
        came = Reply("", Usage(calls=1))
    asked = tuple((role, text) for role, text in messages)
    calls.append(ModelCall(step.value, asked, came.text, came.usage, broken))
