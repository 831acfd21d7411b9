"""The model of a server: limits calls at once, cuts evidence until prompt and reply fit the context window."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakSet

from crag_core.base.concurrency.cancellation import REPLIED, SENT, iterate, wait_for
from crag_core.base.errors import ModelUnavailable, NoLogProbabilities, PromptTooLong, Stopped
from crag_core.base.protocols import Cancel, Clock, Messages, Reply
from crag_core.base.types.steps import Usage
from crag_core.llms.client import LlamaIndexClient, OnBegin, ignore
from crag_core.llms.context_window import ASKED_FROM, LESS, Capacity, tokens_in
from crag_core.llms.reply_errors import never_sent


@dataclass(eq=False)
class LimitedCall:
    """A call of the run with the flag `run`, asked for at `since`."""

    run: Cancel
    model: str
    since: float
    is_begun: bool = False
    """Whether a piece of its reply has come."""


class CallLimit:
    """`at_once` calls under way; the others wait in the order in which they came.

    Only the loop of the model calls may take turns; what there is may be looked at from anywhere.
    """

    def __init__(self, at_once: int, clock: Clock = time.monotonic) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._clock = clock
        self._calls: set[LimitedCall] = set()
        self.active = 0
        """Calls that have their turn."""
        self._heard: WeakSet[Cancel] = WeakSet()

    @asynccontextmanager
    async def turn(self, model: str, cancel: Cancel) -> AsyncIterator[LimitedCall]:
        """Waits for a turn, which lasts as long as the block; raises `Stopped` where `cancel` was set meanwhile."""
        call = LimitedCall(run_of(cancel), model, self._clock())
        self._calls.add(call)
        try:
            async with self._free:
                if cancel.is_set():
                    raise Stopped("Stopped by you.")
                self.active += 1
                try:
                    yield call
                finally:
                    self.active -= 1
        finally:
            self._calls.discard(call)
            if call.is_begun:
                self._heard.add(call.run)

    def silent_model(self, cancel: Cancel, seconds: float) -> str:
        """The model that this run has asked for so many seconds while no piece has come of any of its calls; or ""."""
        run = run_of(cancel)
        if run in self._heard:
            return ""
        own = [call for call in self._calls.copy() if call.run is run]
        if not own or any(call.is_begun for call in own):
            return ""
        first = min(own, key=lambda call: call.since)
        return first.model if self._clock() - first.since >= seconds else ""


def run_of(cancel: Cancel) -> Cancel:
    """The flag of the run itself, of which this one may be a flag with a time limit."""
    while (parent := getattr(cancel, "parent", None)) is not None:
        cancel = parent
    return cancel


ContextLength = Callable[[], Awaitable[int | None]]
"""Asks a server how many tokens its model reads at once; None where it does not tell."""

Piece = TypeVar("Piece", str, Reply)

Ask = Callable[[Messages, OnBegin], AsyncGenerator[Piece | Usage, None]]
"""Sends messages that fit, and gives what comes, its usage last."""

_LOOKING = 1.0  # seconds


class ServerModel:
    """A `LanguageModel` that cuts evidence before each call and reports in its usage how much.

    A prompt that the server still finds too long is sent once more, with less. `SENT` hears of both.
    """

    tells_sent = True

    def __init__(
        self,
        client: LlamaIndexClient,
        limit: CallLimit,
        capacity: Capacity,
        context_length: ContextLength,
        asked_from: int = ASKED_FROM,
    ) -> None:
        """`context_length` is asked before the first prompt of more than `asked_from` tokens."""
        self.name = client.name
        self._client = client
        self._limit = limit
        self._capacity = capacity
        self._context_length = context_length
        self._asked_from = asked_from

    async def _ask(self, messages: Messages, cancel: Cancel, ask: Ask[Piece], on_begin: OnBegin) -> Reply:
        """The whole of a reply that comes in pieces of text, or as one `Reply`."""
        texts: list[str] = []
        reply, usage = Reply(""), Usage(1)
        async with aclosing(self._pieces(messages, cancel, ask, on_begin)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Usage):
                    usage = piece
                elif isinstance(piece, Reply):
                    reply = piece
                else:
                    texts.append(piece)
        return replace(reply, text="".join(texts) or reply.text, usage=usage)

    def complete(self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None) -> Reply:
        reply = self.complete_all([messages], cancel, schema)[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: dict[str, Any] | None = None
    ) -> list[Reply | Exception]:
        def ask(messages: Messages, on_begin: OnBegin) -> AsyncGenerator[str | Usage, None]:
            return self._client.pieces(messages, cancel, schema, on_begin)

        return wait_for(_together(chats, lambda messages, on_begin: self._ask(messages, cancel, ask, on_begin)), cancel)

    def first_tokens(self, chats: Sequence[Messages], cancel: Cancel) -> list[Reply | Exception]:
        return wait_for(self._first_tokens(chats, cancel), cancel)

    async def _first_tokens(self, chats: Sequence[Messages], cancel: Cancel) -> list[Reply | Exception]:
        """The first chat goes alone until the server has once told log probabilities, since it may know of none."""

        async def ask(messages: Messages, on_begin: OnBegin) -> Reply:
            reply = await self._ask(messages, cancel, self._client.first_token, on_begin)
            self._capacity.has_logprobs = self._capacity.has_logprobs or bool(reply.top_logprobs)
            return reply

        alone = 0 if self._capacity.has_logprobs else 1
        found = await _together(chats[:alone], ask)
        if found and isinstance(found[0], NoLogProbabilities):
            raise found[0]
        if found and isinstance(found[0], ModelUnavailable) and found[0].is_late:
            return found * len(chats)
        return found + await _together(chats[alone:], ask)

    def stream(self, messages: Messages, cancel: Cancel) -> Iterator[str | Usage]:
        def ask(messages: Messages, on_begin: OnBegin) -> AsyncGenerator[str | Usage, None]:
            return self._client.pieces(messages, cancel, None, on_begin)

        return iterate(self._pieces(messages, cancel, ask), cancel)

    async def _pieces(
        self, messages: Messages, cancel: Cancel, ask: Ask[Piece], on_begin: OnBegin = ignore
    ) -> AsyncGenerator[Piece | Usage, None]:
        async with self._limit.turn(self.name, cancel) as call:

            def begin() -> None:
                call.is_begun = True
                on_begin()

            for again in range(2):
                await self._learn_length(messages)
                short, cut = self._capacity.fit(messages, LESS if again else 1.0)
                sent = [] if (told := SENT.get()) is None else told
                sent.append(messages)
                try:
                    async with aclosing(ask(short, begin)) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, Usage):
                                yield replace(piece, cut=cut, calls=piece.calls + again)
                            else:
                                yield piece
                    return
                except PromptTooLong:
                    if call.is_begun or again:
                        raise
                except ModelUnavailable as error:
                    if never_sent(error):
                        sent[:] = [one for one in sent if one is not messages]
                    raise

    async def _learn_length(self, messages: Messages) -> None:
        capacity = self._capacity
        async with capacity.asking:
            if not capacity.is_asked and tokens_in(messages) > self._asked_from:
                try:
                    async with asyncio.timeout(_LOOKING):
                        capacity.set_context_length(await self._context_length())
                except Exception as error:  # it fails at the call itself or not at all
                    capacity.is_asked = not never_sent(error)


async def _together(
    chats: Sequence[Messages], ask: Callable[[Messages, OnBegin], Awaitable[Reply]]
) -> list[Reply | Exception]:
    """The reply to each chat, or the error that came instead of it; `REPLIED` is called for each as it comes.

    Once one was given up for its time, those that have not begun are given up with it: they would only wait as
    long, one after the other.
    """
    begun: set[int] = set()
    given_up: list[ModelUnavailable] = []

    async def ask_one(place: int, messages: Messages) -> Reply | Exception:
        came: Reply | Exception
        try:
            came = await ask(messages, lambda: begun.add(place))
        except Exception as error:
            came = error
        if isinstance(came, ModelUnavailable) and came.is_late:
            given_up.append(came)
            for other, task in enumerate(tasks):
                if other != place and other not in begun:
                    task.cancel()
        REPLIED.get()()
        return came

    tasks = [asyncio.ensure_future(ask_one(place, messages)) for place, messages in enumerate(chats)]
    found: list[Reply | Exception] = []
    for came in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(came, asyncio.CancelledError):
            found.append(given_up[0])
        elif isinstance(came, Stopped) or (isinstance(came, BaseException) and not isinstance(came, Exception)):
            raise came
        else:
            found.append(came)
    return found
