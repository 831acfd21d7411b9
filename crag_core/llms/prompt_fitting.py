"""A model wrapper that cuts evidence until prompt and reply fit the context window."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from crag_core.base.errors import PromptTooLong
from crag_core.base.protocols import Cancel, Messages, Reply
from crag_core.base.types import Usage
from crag_core.llms.context_window import Capacity
from crag_core.llms.model import ALONE, Call, LoopModel

Reads = Callable[[], Awaitable[int | None]]
"""Asks a server how many tokens its model reads at once; None where it does not tell."""

_LOOKING = 3.0  # seconds


class Fitting(LoopModel):
    """Cuts evidence before each call, tells in its usage how much, and counts as the server does.

    A server that finds a prompt too long all the same is asked once more, with less.
    """

    def __init__(self, model: LoopModel, capacity: Capacity, reads: Reads) -> None:
        self.name = model.name
        self._model = model
        self._capacity = capacity
        self._reads = reads

    async def ask(
        self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None, call: Call = ALONE
    ) -> Reply | Exception:
        short, cut = await self._fit(messages)
        came = await self._model.ask(short, cancel, schema, call)
        if isinstance(came, PromptTooLong):
            self._capacity.has_refused(short, came.said)
            short, cut = await self._fit(messages)
            came = await self._model.ask(short, cancel, schema, call)
        return replace(came, usage=self._counted(came.usage, short, cut)) if isinstance(came, Reply) else came

    async def pieces(
        self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None, call: Call = ALONE
    ) -> AsyncGenerator[str | Usage, None]:
        short, cut = await self._fit(messages)
        is_begun = False
        for is_last in (False, True):
            try:
                async with aclosing(self._model.pieces(short, cancel, schema, call)) as pieces:
                    async for piece in pieces:
                        is_begun = True
                        yield self._counted(piece, short, cut) if isinstance(piece, Usage) else piece
                return
            except PromptTooLong as error:
                self._capacity.has_refused(short, error.said)
                if is_begun or is_last:
                    raise
            short, cut = await self._fit(messages)

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
