"""A LlamaIndex LLM as the client of one model server: counted, with time limits and typed errors."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
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

Value = TypeVar("Value")

LONGEST_TEXT = 50_000
"""Characters of one reply: more than ten times what is asked for. A server that writes on and on is not listened to."""
LOADING = 5
"""Before its first piece a reply is waited for so many times as long as for a further one: the server may load the
model, or serve others."""
PATIENCE = 10
"""A reply may take so many times what is waited for one piece of it: slow machines write slowly, but not for ever."""
_SMALLER = "Choose a smaller model."


@dataclass(frozen=True)
class Timeouts:
    """Seconds that a call is waited for: for its first piece, for each further one, and for the whole reply.

    Before the first piece a server may load its model or serve others; after it, silence means that it is stuck.
    """

    first_token: float = math.inf
    between_tokens: float = math.inf
    total: float = math.inf


def timeouts_of(seconds: float) -> Timeouts:
    """From the seconds that a reply may be silent."""
    return Timeouts(LOADING * seconds, seconds, PATIENCE * seconds)


@dataclass(eq=False)
class Call:
    """A call that was asked for at `since`."""

    model: str
    cancel: Cancel
    since: float
    is_begun: bool = False
    """Whether a piece of its reply has come."""


_OPENED: ContextVar[list[httpx.Response] | None] = ContextVar("opened", default=None)
"""The responses of the call that this task makes."""


async def note_response(response: httpx.Response) -> None:
    """A hook of an `httpx` client."""
    if (opened := _OPENED.get()) is not None:
        opened.append(response)


@dataclass(frozen=True)
class LlamaIndexClient:
    """One client of one server, whose replies are awaited on the one loop of all model calls.

    Every reply is a stream, so that a server at work differs from one that is stuck.
    """

    llm: LLM
    name: str
    explain: Callable[[Exception], CragError | None] = lambda error: None
    """The project's error for what the client raised, or a `WrongShape`; None lets it through, for it is a bug."""
    structured: Callable[[dict[str, Any]], dict[str, Any]] = lambda schema: {}
    """The call arguments that ask for a reply of the given JSON schema."""
    streaming: Mapping[str, Any] = field(default_factory=dict)
    """More call arguments."""
    timeouts: Timeouts = Timeouts()
    first: Callable[[list[dict[str, str]]], Awaitable[object]] | None = None
    """Asks the server for one token with the log probabilities in its place: what its own client makes of the reply."""
    no_probabilities: tuple[str, str] = ("No log probabilities are handed on.", "Choose another evaluator.")
    """Message and hint where the server tells none."""

    async def pieces(
        self, messages: Messages, call: Call, schema: dict[str, Any] | None = None
    ) -> AsyncGenerator[Reply, None]:
        """One reply in pieces; the last has no text but the usage."""
        is_reply, length, ended = False, 0, None
        last: ChatResponse | None = None
        options = {**self.streaming, **(self.structured(schema) if schema else {})}
        end = time.monotonic() + self.timeouts.total
        opened: list[httpx.Response] = []
        _OPENED.set(opened)
        try:
            stream = await self._wait(self.llm.astream_chat(_chat(messages), **options), call, end)
            try:
                while (came := await self._wait(anext(stream, None), call, end)) is not None:
                    last, call.is_begun = came, True
                    is_reply = is_reply or bool(last.delta) or is_of_model(last.raw)
                    if (said := end_of(last.raw)) is not None:
                        ended = ended or said
                    if last.delta:
                        length += len(last.delta)
                        if length > LONGEST_TEXT:
                            raise TooLong(f"wrote more than {LONGEST_TEXT} characters", "Choose another model.")
                        yield Reply(last.delta)
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
        yield Reply("", Usage(1, *counts(last.raw if last else None), ended=ended or ""))

    async def first_token(self, messages: Messages, call: Call) -> AsyncGenerator[Reply, None]:
        """One reply of one token; raises `NoLogProbabilities` where nothing says how probable it was.

        A reply that ends without a word has none, and is one all the same.
        """
        message, hint = self.no_probabilities
        if self.first is None:
            raise NoLogProbabilities(message, hint=hint)
        try:
            sent = [{"role": role, "content": text} for role, text in _sound(messages)]
            reply = first_token(await self._wait(self.first(sent), call, time.monotonic() + self.timeouts.total))
        except Exception as error:
            if isinstance(error, CragError) or "logprob" not in str(error).lower():
                raise self._explained(error) from error
            raise NoLogProbabilities(message, hint=hint) from error
        if reply.text and not reply.top_logprobs:
            raise NoLogProbabilities(message, hint=hint)
        call.is_begun = True
        yield reply

    async def _wait(self, work: Awaitable[Value], call: Call, end: float) -> Value:
        """Raises `TooLong`."""
        waits = self.timeouts
        seconds, left = waits.between_tokens if call.is_begun else waits.first_token, end - time.monotonic()
        scope = asyncio.timeout(max(min(seconds, left), 0.0))
        try:
            async with scope:
                return await apart(work)
        except TimeoutError:
            if not scope.expired():  # the client's own
                raise
        if left < seconds:
            raise TooLong(f"took longer than {waits.total:g} s in all for a reply", _SMALLER)
        if call.is_begun:
            raise TooLong(f"fell silent for {seconds:g} s in the middle of a reply", _SMALLER)
        raise TooLong(
            f"did not begin to answer within {seconds:g} s: it still loads the model, or serves others",
            "Wait and continue, or choose a smaller model.",
        )

    def _explained(self, error: Exception) -> Exception:
        return error if isinstance(error, CragError) else self.explain(error) or error


def _chat(messages: Messages) -> list[ChatMessage]:
    from llama_index.core.base.llms.types import ChatMessage

    return [ChatMessage(role=role, content=text) for role, text in _sound(messages)]


def _sound(messages: Messages) -> list[tuple[str, str]]:
    """Half a surrogate pair, as broken documents have them, cannot be sent."""
    return [(role, text.encode("utf-8", "replace").decode("utf-8")) for role, text in messages]
