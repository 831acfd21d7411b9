"""The model of a server: limits calls at once, cuts evidence until prompt and reply fit the context window."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import replace
from typing import Any
from weakref import WeakSet

from crag_core.base.concurrency.cancellation import REPLIED, SENT, iterate, wait_for
from crag_core.base.errors import ModelUnavailable, NoLogProbabilities, PromptTooLong, Stopped
from crag_core.base.protocols import Cancel, Clock, Messages, Reply
from crag_core.base.types.steps import Usage
from crag_core.llms.client import Call, LlamaIndexClient
from crag_core.llms.context_window import ASKED_FROM, LESS, Capacity, tokens_in
from crag_core.llms.reply_errors import never_sent


class CallLimit:
    """`at_once` calls under way; the others wait in the order in which they came.

    Only the loop of the model calls may take turns; what there is may be looked at from anywhere.
    """

    def __init__(self, at_once: int, clock: Clock = time.monotonic) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._clock = clock
        self._calls: set[Call] = set()
        self.active = 0
        """Calls that have their turn."""
        self._heard: WeakSet[Cancel] = WeakSet()

    def call(self, model: str, cancel: Cancel) -> Call:
        return Call(model, cancel, self._clock())

    @asynccontextmanager
    async def turn(self, call: Call) -> AsyncIterator[None]:
        """Waits for a turn, which lasts as long as the block; raises `Stopped` where the run was stopped meanwhile."""
        self._calls.add(call)
        try:
            async with self._free:
                if call.cancel.is_set():
                    raise Stopped()
                self.active += 1
                try:
                    yield
                finally:
                    self.active -= 1
        finally:
            self._calls.discard(call)
            if call.is_begun:
                self._heard.add(run_of(call.cancel))

    def silent_model(self, cancel: Cancel, seconds: float) -> str:
        """The model that this run has asked for so many seconds while no piece has come of any of its calls; or ""."""
        run = run_of(cancel)
        own = [call for call in self._calls.copy() if run_of(call.cancel) is run]
        if not own or run in self._heard or any(call.is_begun for call in own):
            return ""
        first = min(own, key=lambda call: call.since)
        return first.model if self._clock() - first.since >= seconds else ""


def run_of(cancel: Cancel) -> Cancel:
    """The flag of the run itself, of which this one may be a flag with a time limit."""
    while (parent := getattr(cancel, "parent", None)) is not None:
        cancel = parent
    return cancel


Ask = Callable[[Messages, Call], AsyncGenerator[Reply, None]]
"""Sends messages that fit, and gives the reply in pieces, the last with its usage."""

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
        context_length: Callable[[], Awaitable[int | None]],
        asked_from: int = ASKED_FROM,
    ) -> None:
        """`context_length` asks the server how many tokens its model reads at once, before the first prompt of more
        than `asked_from` tokens; None where it does not tell."""
        self.name = client.name
        self._client = client
        self._limit = limit
        self._capacity = capacity
        self._context_length = context_length
        self._asked_from = asked_from

    def complete(self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None) -> Reply:
        reply = self.complete_all([messages], cancel, schema)[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: dict[str, Any] | None = None
    ) -> list[Reply | Exception]:
        def ask(messages: Messages, call: Call) -> AsyncGenerator[Reply, None]:
            return self._client.pieces(messages, call, schema)

        return wait_for(self._together(chats, cancel, ask), cancel)

    def first_tokens(self, chats: Sequence[Messages], cancel: Cancel) -> list[Reply | Exception]:
        return wait_for(self._first_tokens(chats, cancel), cancel)

    async def _first_tokens(self, chats: Sequence[Messages], cancel: Cancel) -> list[Reply | Exception]:
        """The first chat goes alone until the server has once told log probabilities, since it may know of none."""
        ask, capacity = self._client.first_token, self._capacity
        alone = 0 if capacity.has_logprobs else 1
        found = await self._together(chats[:alone], cancel, ask)
        match found:
            case [NoLogProbabilities() as error]:
                raise error
            case [ModelUnavailable(is_late=True)]:
                return found * len(chats)
            case [Reply() as reply]:
                capacity.has_logprobs = capacity.has_logprobs or bool(reply.top_logprobs)
        return found + await self._together(chats[alone:], cancel, ask)

    def stream(self, messages: Messages, cancel: Cancel) -> Iterator[str | Usage]:
        call = self._limit.call(self.name, cancel)
        with closing(iterate(self._pieces(messages, call, self._client.pieces), cancel)) as pieces:  # type: ignore[type-var]
            for piece in pieces:
                yield piece.text or piece.usage

    async def _pieces(self, messages: Messages, call: Call, ask: Ask) -> AsyncGenerator[Reply, None]:
        async with self._limit.turn(call):
            for again in range(2):
                await self._learn_length(messages)
                short, cut = self._capacity.fit(messages, LESS if again else 1.0)
                sent = [] if (told := SENT.get()) is None else told
                sent.append(messages)
                try:
                    async with aclosing(ask(short, call)) as pieces:
                        async for piece in pieces:
                            spent = piece.usage
                            if spent.calls:
                                piece = replace(piece, usage=replace(spent, cut=cut, calls=spent.calls + again))
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

    async def _together(self, chats: Sequence[Messages], cancel: Cancel, ask: Ask) -> list[Reply | Exception]:
        """The reply to each chat, or the error that came instead of it; `REPLIED` is called for each as it comes.

        Once one was given up for its time, those that have not begun are given up with it: they would only wait as
        long, one after the other.
        """
        calls = [self._limit.call(self.name, cancel) for _ in chats]
        given_up: list[ModelUnavailable] = []

        async def ask_one(messages: Messages, call: Call) -> Reply | Exception:
            came: Reply | Exception
            try:
                came = await self._whole(messages, call, ask)
            except Exception as error:
                came = error
            if isinstance(came, ModelUnavailable) and came.is_late:
                given_up.append(came)
                for other, task in zip(calls, tasks, strict=True):
                    if other is not call and not other.is_begun:
                        task.cancel()
            REPLIED.get()()
            return came

        tasks = [asyncio.ensure_future(ask_one(*one)) for one in zip(chats, calls, strict=True)]
        found: list[Reply | Exception] = []
        for came in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(came, asyncio.CancelledError):
                found.append(given_up[0])
            elif isinstance(came, Stopped) or (isinstance(came, BaseException) and not isinstance(came, Exception)):
                raise came
            else:
                found.append(came)
        return found

    async def _whole(self, messages: Messages, call: Call, ask: Ask) -> Reply:
        texts, last = [], Reply("")
        async with aclosing(self._pieces(messages, call, ask)) as pieces:
            async for last in pieces:
                texts.append(last.text)
        return replace(last, text="".join(texts))
