"""One language model that several servers have: they are asked in turn, and one that fails is left out for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from crag_core.errors import CragError, ModelMissing, ModelUnavailable
from crag_core.llms.model import LoopModel
from crag_core.llms.pool import Pool, Turn
from crag_core.protocols import Messages, Reply
from crag_core.types import Usage

Failures = dict[str, CragError]
"""What each server that was asked in vain said, by its URL."""


class Line:
    """Where calls wait for their turn at the servers of a pool; one for all models and runs that use these servers.

    Only the loop of the model calls may use it; the pool may be looked at from anywhere.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._moved = asyncio.Event()

    async def take(self, model: str, but: Collection[str]) -> Turn:
        while (turn := self.pool.take(model, but)) is None:
            # Somebody's turn ends, or a server may be tried again.
            with suppress(TimeoutError):
                async with asyncio.timeout(self.pool.wait()):
                    await self._moved.wait()
        return turn

    def give_back(self, turn: Turn, came: object) -> None:
        """`came`: the reply, or the error in place of it; anything else: the call was given up."""
        if isinstance(came, Reply):
            self.pool.served(turn)
        elif isinstance(came, ModelMissing):
            self.pool.lacks(turn)
        elif isinstance(came, ModelUnavailable) and came.is_of_request:
            self.pool.answered(turn)
        elif isinstance(came, ModelUnavailable):
            self.pool.failed(turn, came.message)
        else:
            self.pool.dropped(turn)
        self._moved.set()
        self._moved = asyncio.Event()


class SeveralServers(LoopModel):
    """The model `name` by the URL of each server of `line`. A call is tried once on each before it fails."""

    def __init__(self, name: str, models: Mapping[str, LoopModel], line: Line) -> None:
        self.name = name
        self._models = models
        self._line = line

    async def ask(self, messages: Messages, schema: dict[str, Any] | None = None) -> Reply | Exception:
        failures: Failures = {}
        while len(failures) < len(self._models):
            turn = await self._line.take(self.name, failures)
            came: Reply | Exception | None = None
            try:
                came = await self._models[turn.server].ask(messages, schema)
            finally:
                self._line.give_back(turn, came)
            if isinstance(came, Reply):
                return replace(came, usage=came.usage + _spent(failures))
            if not isinstance(came, ModelUnavailable | ModelMissing):
                return came
            failures[turn.server] = came
        return self._nobody(failures)

    async def pieces(self, messages: Messages) -> AsyncGenerator[str | Usage, None]:
        """A server that fails before its first piece is passed over; later its failure is the call's."""
        failures: Failures = {}
        while len(failures) < len(self._models):
            turn = await self._line.take(self.name, failures)
            came: Reply | Exception | None = None
            is_begun = False
            try:
                async with aclosing(self._models[turn.server].pieces(messages)) as pieces:
                    async for piece in pieces:
                        is_begun = True
                        yield piece + _spent(failures) if isinstance(piece, Usage) else piece
                came = Reply("")
            except (ModelUnavailable, ModelMissing) as error:
                came = failures[turn.server] = error
                if is_begun:
                    raise
            finally:
                self._line.give_back(turn, came)
            if isinstance(came, Reply):
                return
        raise self._nobody(failures)

    def _nobody(self, failures: Failures) -> CragError:
        """What to tell when every server was asked in vain: each in a line of its own."""
        told = [error.message for error in failures.values()]
        hint = " ".join(dict.fromkeys(error.hint for error in failures.values() if error.hint))
        if all(isinstance(error, ModelMissing) for error in failures.values()):
            first = f"None of the {len(told)} model servers has the model {self.name!r}."
            return ModelMissing("\n".join([first, *told]), hint=hint)
        return ModelUnavailable("\n".join([f"None of the {len(told)} model servers could answer.", *told]), hint=hint)


def _spent(failures: Failures) -> Usage:
    """Calls that were made in vain are calls, too."""
    return Usage(calls=len(failures))
