"""A language model that one server has, or several: its calls wait in line, and a server that fails is passed over."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from crag_core.base.errors import CragError, ModelMissing, ModelUnavailable
from crag_core.base.protocols import Cancel, Messages, Reply
from crag_core.base.types import Usage
from crag_core.llms.call_queue import Line
from crag_core.llms.model import ALONE, Call, LoopModel
from crag_core.llms.server_pool import Pool, Turn

Failures = dict[str, CragError]
"""What each server that was asked in vain said, by its URL."""


class Served(LoopModel):
    """The model `name` by the URL of each server of `line`. A call is tried once on each before it fails."""

    def __init__(self, name: str, clients: Mapping[str, LoopModel], line: Line) -> None:
        self.name = name
        self._clients = clients
        self._line = line

    async def ask(
        self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None, call: Call = ALONE
    ) -> Reply | Exception:
        failures: Failures = {}
        while len(failures) < len(self._clients):
            turn = await self._line.take(self.name, cancel, failures)
            came: Reply | Exception | None = None
            try:
                call = self._made(call, turn)
                came = await self._clients[turn.server].ask(messages, cancel, schema, call)
            finally:
                self._line.give_back(turn, came)
            if isinstance(came, Reply):
                return replace(came, usage=came.usage + _spent(failures))
            if not isinstance(came, ModelUnavailable | ModelMissing):
                return came
            failures[turn.server] = came
        return self._nobody(failures)

    async def pieces(
        self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None, call: Call = ALONE
    ) -> AsyncGenerator[str | Usage, None]:
        """A server that fails before its first piece is passed over; later its failure is the call's."""
        failures: Failures = {}
        while len(failures) < len(self._clients):
            turn = await self._line.take(self.name, cancel, failures)
            came: Reply | Exception | None = None
            is_begun = False
            try:
                call = self._made(call, turn)
                async with aclosing(self._clients[turn.server].pieces(messages, cancel, schema, call)) as pieces:
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

    def _made(self, call: Call, turn: Turn) -> Call:
        """`call` as it is made at one server; what is waited for it in all counts from the first."""

        def begin() -> None:
            self._line.begin(turn)
            call.on_begin()

        return Call(begin, time.monotonic() if call.since is None else call.since)

    def _nobody(self, failures: Failures) -> CragError:
        """What to tell when every server was asked in vain: each in a line of its own; one alone in its own words."""
        if len(failures) == 1:
            return next(iter(failures.values()))
        text = [error.message for error in failures.values()]
        is_late = any(isinstance(error, ModelUnavailable) and error.is_late for error in failures.values())
        hint = " ".join(dict.fromkeys(error.hint for error in failures.values() if error.hint))
        if all(isinstance(error, ModelMissing) for error in failures.values()):
            first = f"None of the {len(text)} model servers has the model {self.name!r}."
            return ModelMissing("\n".join([first, *text]), hint=hint)
        first = f"None of the {len(text)} model servers could answer."
        return ModelUnavailable("\n".join([first, *text]), hint=hint, is_late=is_late)


def alone(client: LoopModel, url: str, at_once: int) -> Served:
    """The model of one server, in a line of its own: for one who is the only one to ask there."""
    return Served(client.name, {url: client}, Line(Pool([url], at_once)))


def _spent(failures: Failures) -> Usage:
    """Calls that were made in vain are calls, too."""
    return Usage(calls=len(failures))
