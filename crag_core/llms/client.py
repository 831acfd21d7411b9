"""A LlamaIndex LLM as the client of one model server: cancellable, counted, with time limits and typed errors."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from crag_core.base.concurrency.cancellation import apart
from crag_core.base.errors import CragError, NoLogProbabilities
from crag_core.base.protocols import Cancel, Messages, Reply
from crag_core.base.types.steps import NO_END, Usage
from crag_core.llms.first_token import first_token
from crag_core.llms.reply_errors import TooLong, WrongShape, counts, end_of, is_of_model, is_of_wire

if TYPE_CHECKING:
    import httpx
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse
    from llama_index.core.llms import LLM

Explain = Callable[[Exception], CragError | None]
"""Turns a client's exception, or a `WrongShape`, into the project's error; None lets it through, for it is a bug."""

Value = TypeVar("Value")

Structured = Callable[[dict[str, Any]], dict[str, Any]]
"""The call arguments that ask for a reply of the given JSON schema."""


First = Callable[[list[dict[str, str]]], Awaitable[object]]
"""Asks the server for one token with the log probabilities in its place: what its own client makes of the reply."""

OnBegin = Callable[[], object]
"""Hears that the first piece of a reply has come."""


def ignore() -> None:
    """Hears nothing."""


LONGEST_TEXT = 50_000
"""Characters of one reply: more than ten times what is asked for. A server that writes on and on is not listened to."""


@dataclass(frozen=True)
class Timeouts:
    """Seconds that a call is waited for: for its first piece, for each further one, and for the whole reply.

    Before the first piece a server may load its model or serve others; after it, silence means that it is stuck.
    """

    first_token: float = math.inf
    between_tokens: float = math.inf
    total: float = math.inf


LOADING = 5
"""Before its first piece a reply is waited for so many times as long as for a further one: the server may load the
model, or serve others."""
PATIENCE = 10
"""A reply may take so many times what is waited for one piece of it: slow machines write slowly, but not for ever."""


_OPENED: ContextVar[list[httpx.Response] | None] = ContextVar("opened", default=None)
"""The responses of the call that this task makes."""


async def note_response(response: httpx.Response) -> None:
    """A hook of an `httpx` client."""
    if (opened := _OPENED.get()) is not None:
        opened.append(response)


def timeouts_of(seconds: float) -> Timeouts:
    """From the seconds that a reply may be silent."""
    return Timeouts(LOADING * seconds, seconds, PATIENCE * seconds)


class LlamaIndexClient:
    """One client of one server, whose replies are awaited on the one loop of all model calls.

    Every reply is a stream, so that a server at work differs from one that is stuck; `streaming` are extra call
    arguments for it. `first` is for `first_token`, `no_probabilities` the message and hint where the server tells none.
    """

    def __init__(
        self,
        llm: LLM,
        name: str,
        *,
        explain: Explain = lambda error: None,
        structured: Structured = lambda schema: {},
        streaming: Mapping[str, Any] = MappingProxyType({}),
        timeouts: Timeouts = Timeouts(),
        first: First | None = None,
        no_probabilities: tuple[str, str] = ("No log probabilities are handed on.", "Choose another evaluator."),
    ) -> None:
        self.name = name
        self._llm = llm
        self._explain = explain
        self._structured = structured
        self._streaming = dict(streaming)
        self._timeouts = timeouts
        self._first = first
        self._no_probabilities = no_probabilities

    async def pieces(
        self,
        messages: Messages,
        cancel: Cancel,
        schema: dict[str, Any] | None = None,
        on_begin: OnBegin = ignore,
    ) -> AsyncGenerator[str | Usage, None]:
        """The pieces of one reply, its usage last. `cancel` tells whose call it is; who sets it ends this coroutine."""
        is_reply, length, ended = False, 0, None
        last: ChatResponse | None = None
        options = {**self._streaming, **(self._structured(schema) if schema else {})}
        waiting = _Waiting(self._timeouts)
        opened: list[httpx.Response] = []
        _OPENED.set(opened)
        try:
            stream = await waiting.wait(self._llm.astream_chat(_chat(messages), **options))
            try:
                while (came := await waiting.wait(anext(stream, None))) is not None:
                    last = came
                    if not waiting.is_begun:
                        waiting.is_begun = True
                        on_begin()
                    is_reply = is_reply or bool(last.delta) or is_of_model(last.raw)
                    if (said := end_of(last.raw)) is not None:
                        ended = ended or said
                    if last.delta:
                        length += len(last.delta)
                        if length > LONGEST_TEXT:
                            raise TooLong(f"wrote more than {LONGEST_TEXT} characters", "Choose another model.")
                        yield last.delta
            finally:
                close = getattr(stream, "aclose", None)
                if close:
                    with suppress(RuntimeError):  # cancelled twice: its last piece closes it, in a task of its own
                        await close()
                for response in opened:  # a client that failed at a piece leaves it open
                    await response.aclose()
            if not is_reply:
                raise WrongShape("an end without a word")
            if ended is None and length and last and is_of_wire(last.raw):
                ended = NO_END
        except Exception as error:
            raise self._explained(error) from error
        yield _usage(last, ended or "")

    async def first_token(self, messages: Messages, on_begin: OnBegin = ignore) -> AsyncGenerator[Reply | Usage, None]:
        """One reply of one token, then its usage; raises `NoLogProbabilities` where nothing says how probable it was.

        A reply that ends without a word has none, and is one all the same.
        """
        if self._first is None:
            raise self._without_probabilities()
        waiting = _Waiting(self._timeouts)
        try:
            sent = [{"role": role, "content": text} for role, text in _sound(messages)]
            reply = first_token(await waiting.wait(self._first(sent)))
        except Exception as error:
            refused = "logprob" in str(error).lower() and not isinstance(error, CragError)
            raise (self._without_probabilities() if refused else self._explained(error)) from error
        if reply.text and not reply.top_logprobs:
            raise self._without_probabilities()
        on_begin()
        yield reply
        yield reply.usage

    def _without_probabilities(self) -> NoLogProbabilities:
        message, hint = self._no_probabilities
        return NoLogProbabilities(message, hint=hint)

    def _explained(self, error: Exception) -> Exception:
        return error if isinstance(error, CragError) else self._explain(error) or error


class _Waiting:
    """How long the next piece of one reply is waited for."""

    def __init__(self, timeouts: Timeouts) -> None:
        self.is_begun = False
        self._timeouts = timeouts
        self._end = time.monotonic() + timeouts.total

    async def wait(self, work: Awaitable[Value]) -> Value:
        """Raises `TooLong`."""
        left = self._end - time.monotonic()
        limit = min(self._timeouts.between_tokens if self.is_begun else self._timeouts.first_token, left)
        scope = asyncio.timeout(None if limit == math.inf else max(limit, 0.0))
        try:
            async with scope:
                return await apart(work)
        except TimeoutError:
            if not scope.expired():  # the client's own
                raise
            raise self._too_long(is_whole=limit == left) from None

    def _too_long(self, is_whole: bool) -> TooLong:
        now, smaller = self._timeouts, "Choose a smaller model."
        if is_whole:
            return TooLong(f"took longer than {now.total:g} s in all for a reply", smaller)
        if self.is_begun:
            return TooLong(f"fell silent for {now.between_tokens:g} s in the middle of a reply", smaller)
        return TooLong(
            f"did not begin to answer within {now.first_token:g} s: it still loads the model, or serves others",
            "Wait and continue, or choose a smaller model.",
        )


def _chat(messages: Messages) -> list[ChatMessage]:
    from llama_index.core.base.llms.types import ChatMessage

    return [ChatMessage(role=role, content=text) for role, text in _sound(messages)]


def _sound(messages: Messages) -> list[tuple[str, str]]:
    """Half a surrogate pair, as broken documents have them, cannot be sent."""
    return [(role, text.encode("utf-8", "replace").decode("utf-8")) for role, text in messages]


def _usage(response: ChatResponse | None, ended: str) -> Usage:
    return Usage(1, *counts(response.raw if response else None), ended=ended)
