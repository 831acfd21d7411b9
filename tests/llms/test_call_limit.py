"""Calls at one server: never more than the limit, in the order they came, given up at once; what is said is true."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from crag_core.base.protocols import Cancel, Messages, Reply
from crag_core.base.types.steps import Usage
from crag_core.llms.client import Call
from crag_core.llms.context_window import Capacity
from crag_core.llms.model import CallLimit, ServerModel, run_of
from crag_core.pipeline.run import TimedCancel
from tests.fakes import Hand

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def settled() -> None:
    """Until every task has gone as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


class Calls:
    """Runs that ask at one limit, one letter each; `served` tells who got turns, in order."""

    def __init__(self, limit: CallLimit) -> None:
        self.limit = limit
        self.flags: dict[str, Cancel] = {}
        self.served: list[str] = []
        self.ends: list[asyncio.Event] = []
        self.tasks: list[tuple[str, asyncio.Task[None]]] = []

    def flag(self, who: str) -> Cancel:
        return self.flags.setdefault(who, threading.Event())

    async def ask(self, who: str, count: int = 1) -> None:
        async def one() -> None:
            async with self.limit.turn(self.limit.call("x", self.flag(who))):
                self.served.append(who)
                self.ends.append(end := asyncio.Event())
                try:
                    await end.wait()
                finally:
                    self.ends.remove(end)

        self.tasks += [(who, asyncio.create_task(one())) for _ in range(count)]
        await settled()

    async def end(self) -> None:
        """The call that got its turn longest ago."""
        self.ends[0].set()
        await settled()


def test_calls_get_their_turns_in_the_order_they_came() -> None:
    async def work() -> None:
        calls = Calls(CallLimit(2))
        await calls.ask("a", 3)
        await calls.ask("b")
        await calls.ask("c")
        assert calls.served == ["a", "a"] and calls.limit.active == 2
        await calls.end()
        await calls.end()
        assert calls.served == ["a", "a", "a", "b"]
        for _ in range(3):
            await calls.end()
        assert calls.served[-1] == "c" and calls.limit.active == 0

    run(work())


def test_run_is_told_by_its_flag_whatever_time_limit_is_put_around_it() -> None:
    flag = threading.Event()
    assert run_of(TimedCancel(TimedCancel(flag, None), 5.0)) is flag


def test_the_model_that_has_said_nothing_is_told_after_its_time_until_its_first_piece() -> None:
    async def work() -> None:
        clock, flag = Hand(), threading.Event()
        limit = CallLimit(2, clock)
        first = limit.call("slow", flag)
        async with limit.turn(first):
            assert (limit.silent_model(flag, 0.0), limit.silent_model(flag, 1.5)) == ("slow", "")
            clock.now += 2
            assert limit.silent_model(flag, 1.5) == "slow" and limit.silent_model(threading.Event(), 0.0) == ""
            second = limit.call("other", flag)
            async with limit.turn(second):
                assert limit.silent_model(flag, 1.5) == "slow", "it was asked first"
                second.is_begun = True
                assert limit.silent_model(flag, 1.5) == "", "the run hears something"
            first.is_begun = True
            assert limit.silent_model(flag, 0.0) == ""
        async with limit.turn(limit.call("slow", flag)):
            assert limit.silent_model(flag, 0.0) == "", "it has answered in this run: it is there"

    run(work())


# --- through the model ----------------------------------------------------------------------------------------------


class Gated:
    """Its replies come when `go` is set; `begun` tells what was asked, in order."""

    name = "gated"

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = threading.Event()

    async def pieces(
        self, messages: Messages, call: Call, schema: dict[str, Any] | None = None
    ) -> AsyncGenerator[Reply, None]:
        self.begun.append(messages[-1][1])
        while not self.go.is_set():
            await asyncio.sleep(0.001)
        call.is_begun = True
        yield Reply(messages[-1][1])
        yield Reply("", Usage(1))


async def reads_nothing() -> int | None:
    return None


def limited(model: Any, limit: CallLimit) -> ServerModel:
    return ServerModel(model, limit, Capacity(), reads_nothing)


def chats(who: str, count: int) -> list[Messages]:
    return [(("user", f"{who}{number}"),) for number in range(count)]


def test_stream_that_nobody_reads_to_its_end_gives_its_turn_back() -> None:
    client = Gated()
    client.go.set()
    model = limited(client, CallLimit(1))
    stream = model.stream(chats("a", 1)[0], threading.Event())
    assert next(stream) == "a0"
    stream.close()  # type: ignore[attr-defined]
    assert model.complete(chats("b", 1)[0], threading.Event()).text == "b0"
