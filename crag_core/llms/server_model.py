"""The model of a server: limits calls at once, cuts evidence until prompt and reply fit the context window."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from crag_core.base.errors import PromptTooLong
from crag_core.base.protocols import Cancel, Messages
from crag_core.base.types import Usage
from crag_core.llms.call_limit import CallLimit
from crag_core.llms.context_window import Capacity
from crag_core.llms.model import LoopModel, OnBegin, ignore

Reads = Callable[[], Awaitable[int | None]]
"""Asks a server how many tokens its model reads at once; None where it does not tell."""

_LOOKING = 3.0  # seconds


class ServerModel(LoopModel):
    """Cuts evidence before each call, tells in its usage how much, and counts as the server does.

    A server that finds a prompt too long all the same is asked once more, with less.
    """

    def __init__(self, model: LoopModel, limit: CallLimit, capacity: Capacity, reads: Reads) -> None:
        self.name = model.name
        self._model = model
        self._limit = limit
        self._capacity = capacity
        self._reads = reads

    async def pieces(
        self,
        messages: Messages,
        cancel: Cancel,
        schema: dict[str, Any] | None = None,
        on_begin: OnBegin = ignore,
        *,
        is_whole: bool = False,
    ) -> AsyncGenerator[str | Usage, None]:
        async with self._limit.turn(self.name, cancel) as call:

            def begin() -> None:
                call.is_begun = True
                on_begin()

            for is_last in (False, True):
                short, cut = await self._fit(messages)
                try:
                    made = self._model.pieces(short, cancel, schema, begin, is_whole=is_whole)
                    async with aclosing(made) as pieces:
                        async for piece in pieces:
                            yield self._counted(piece, short, cut) if isinstance(piece, Usage) else piece
                    return
                except PromptTooLong as error:
                    self._capacity.has_refused(short, error.said)
                    if call.is_begun or is_last:
                        raise

    async def _fit(self, messages: Messages) -> tuple[Messages, int]:
        capacity = self._capacity
        if not capacity.is_asked and capacity.is_long(messages):
            try:
                async with asyncio.timeout(_LOOKING):
                    capacity.has_said(await self._reads())
            except Exception:  # who is away, or tells something else, fails at the call itself or not at all
                pass
        return capacity.fit(messages)

    def _counted(self, usage: Usage, sent: Messages, cut: int) -> Usage:
        self._capacity.has_counted(sent, usage.prompt_tokens)
        return replace(usage, cut=cut)
