"""Turns at the model servers are fair between runs, whoever is slow, stopped or failing, and the place told is true."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.base.errors import ModelUnavailable, Stopped
from crag_core.base.protocols import Cancel, Messages, Reply
from crag_core.base.types import Usage
from crag_core.llms.call_queue import Line, origin
from crag_core.llms.model import ALONE, Call, LoopModel
from crag_core.llms.pooled_model import Served, alone
from crag_core.llms.server_pool import LONGEST, Pool, Turn
from crag_core.pipeline.run import TimedCancel
from tests.fakes import Hand, set_when
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.ollama_server import MODEL, OllamaServer

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def settled() -> None:
    """Until every task has gone as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


class Diner:
    """Runs that ask at a line, one letter each; `served` tells who got turns, in order."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.flags: dict[str, Cancel] = {}
        self.served: list[str] = []
        self.turns: list[tuple[str, Turn]] = []
        self.tasks: list[tuple[str, asyncio.Task[None]]] = []

    def flag(self, who: str) -> Cancel:
        return self.flags.setdefault(who, threading.Event())

    async def ask(self, who: str, count: int = 1, but: tuple[str, ...] = ()) -> None:
        async def one() -> None:
            turn = await self.line.take("x", self.flag(who), but)
            self.served.append(who)
            self.turns.append((who, turn))

        self.tasks += [(who, asyncio.create_task(one())) for _ in range(count)]
        await settled()

    async def end(self, came: object = Reply("")) -> None:
        """The turn that was given longest ago."""
        self.line.give_back(self.turns.pop(0)[1], came)
        await settled()

    def ahead(self, who: str) -> int | None:
        return self.line.ahead(self.flag(who))


def test_single_call_does_not_wait_for_the_twenty_grades_of_another_run() -> None:
    async def work() -> None:
        diner = Diner(Line(Pool(["http://a"], 2)))
        await diner.ask("a", 20)
        await diner.ask("b", 1)
        await diner.ask("c", 3)
        assert diner.served == ["a", "a"]
        assert [diner.ahead(who) for who in "abcd"] == [None, 1, 2, None], "a has calls under way"
        for _ in range(22):
            await diner.end()
        assert diner.served[2:9] == ["a", "b", "c", "a", "c", "a", "c"]
        assert len(diner.served) == 24 and [diner.ahead(who) for who in "abc"] == [None] * 3

    run(work())


def test_place_is_told_again_when_the_calls_under_way_have_ended() -> None:
    async def work() -> None:
        diner = Diner(Line(Pool(["http://a"], 1)))
        await diner.ask("a", 2)
        await diner.ask("b")
        assert [diner.ahead(who) for who in "ab"] == [None, 1]
        await diner.end()
        assert [diner.ahead(who) for who in "ab"] == [None, 0], "the second of a is under way"
        await diner.ask("a")
        await diner.end()
        assert [diner.ahead(who) for who in "ab"] == [0, None], "that of b is, and a waits"

    run(work())


def test_run_is_told_by_its_flag_whatever_time_limit_is_put_around_it() -> None:
    flag = threading.Event()
    assert origin(TimedCancel(TimedCancel(flag, None), 5.0)) is flag

    async def work() -> None:
        line = Line(Pool(["http://a"], 1))
        first = await line.take("x", threading.Event())
        limited = asyncio.create_task(line.take("x", TimedCancel(flag, None)))
        plain = asyncio.create_task(line.take("x", flag))
        other = asyncio.create_task(line.take("x", threading.Event()))
        await settled()
        assert line.ahead(flag) == line.ahead(TimedCancel(flag, None)) == 0
        line.give_back(first, Reply(""))
        line.give_back(await limited, Reply(""))
        await settled()
        assert other.done() and not plain.done(), "they are one run's, so the other is between them"
        line.give_back(other.result(), Reply(""))
        line.give_back(await plain, Reply(""))

    run(work())


def test_call_that_is_cancelled_leaves_the_line_at_once() -> None:
    async def work() -> None:
        diner = Diner(Line(Pool(["http://a"], 1)))
        for who in "abcd":
            await diner.ask(who)
        assert [diner.ahead(who) for who in "abcd"] == [None, 0, 1, 2]
        next(task for who, task in diner.tasks if who == "b").cancel()
        await settled()
        assert [diner.ahead(who) for who in "abcd"] == [None, None, 0, 1]
        await diner.end()
        await diner.end()
        assert diner.served == ["a", "c", "d"]

    run(work())


def test_call_whose_flag_is_set_gets_no_turn_even_before_it_is_cancelled() -> None:
    async def work() -> None:
        diner = Diner(Line(Pool(["http://a"], 1)))
        for who in "abc":
            await diner.ask(who)
        diner.flag("b").set()
        await diner.end()
        assert diner.served == ["a", "c"]

    run(work())


def test_turn_that_comes_as_its_call_is_cancelled_is_given_back() -> None:
    async def work() -> None:
        diner = Diner(Line(Pool(["http://a"], 1)))
        for who in "abc":
            await diner.ask(who)
        diner.line.give_back(diner.turns.pop()[1], Reply(""))  # b has its turn and does not know yet
        next(task for who, task in diner.tasks if who == "b").cancel()
        await settled()
        assert diner.served == ["a", "c"]
        await diner.end()
        assert diner.line.pool.standings(["a"])[0].busy == 0

    run(work())


def test_who_waits_for_a_server_that_is_left_out_gets_it_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crag_core.llms.server_pool.SHORTEST", 0.05)

    async def work() -> None:
        diner = Diner(Line(Pool(["http://a", "http://b"], 1)))
        await diner.ask("a", but=("http://b",))
        await diner.end(ModelUnavailable("gone"))
        await diner.ask("b")
        await diner.ask("c")
        assert diner.served == ["a", "b"]
        while len(diner.served) < 3:  # nobody gives a turn back
            await asyncio.sleep(0.01)
        assert diner.turns[-1][1].server == "http://a"

    run(asyncio.wait_for(work(), 10.0))


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("abcd"), st.integers(1, 4)),
        st.tuples(st.just("end"), st.sampled_from(["served", "failed", "dropped"]), st.integers(0, 9)),
        st.tuples(st.just("cancel"), st.just(""), st.integers(0, 9)),
        st.tuples(st.just("pass"), st.just(""), st.integers(1, 400)),
    ),
    max_size=40,
)
CAME: dict[str, object] = {"served": Reply(""), "failed": ModelUnavailable("gone"), "dropped": None}


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.integers(1, 3), st.integers(1, 3))
def test_whatever_happens_the_cap_holds_turns_are_fair_and_nobody_starves(
    events: list[tuple[str, str, int]], servers: int, at_once: int
) -> None:
    async def work() -> None:
        clock = Hand()
        pool = Pool([f"http://{number}" for number in range(servers)], at_once, clock)
        diner = Diner(Line(pool))
        waited: dict[str, list[str]] = {}
        """By run that waits, the turns of others since it began to, or since its own last one."""

        def look(before: int) -> None:
            assert max(one.busy for one in pool.standings(pool.servers)) <= at_once
            for who in diner.served[before:]:
                waited.pop(who, None)
                for turns in waited.values():
                    turns.append(who)
            waiting = {who for who, task in diner.tasks if not task.done()}
            for who in set(waited) - waiting:
                del waited[who]
            for who in waiting:
                turns = waited.setdefault(who, [])
                assert len(set(turns)) == len(turns), f"somebody had two turns while {who} waited: {turns}"

        for what, which, number in events:
            before = len(diner.served)
            if what == "ask":
                await diner.ask(which, number)
            elif what == "end" and diner.turns:
                diner.turns.insert(0, diner.turns.pop(number % len(diner.turns)))
                await diner.end(CAME[which])
            elif what == "cancel" and diner.tasks:
                diner.tasks[number % len(diner.tasks)][1].cancel()
                await settled()
            elif what == "pass":
                clock.now += number
                diner.line._serve()  # as its timer does
                await settled()
            look(before)
        clock.now += LONGEST
        diner.line._serve()
        await settled()
        while diner.turns:
            await diner.end()
        assert all(task.done() for _, task in diner.tasks), "everyone who waited was served in the end"
        assert [diner.ahead(who) for who in "abcd"] == [None] * 4
        assert all(one.busy == 0 for one in pool.standings(pool.servers))

    run(work())


# --- through the model ----------------------------------------------------------------------------------------------


class Gated(LoopModel):
    """A client whose replies come when `go` is set; `begun` tells what was asked, in order."""

    name = "gated"

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = threading.Event()

    async def ask(
        self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None, call: Call = ALONE
    ) -> Reply | Exception:
        await self._wait(messages)
        return Reply(messages[-1][1])

    async def pieces(
        self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None, call: Call = ALONE
    ) -> AsyncGenerator[str | Usage, None]:
        await self._wait(messages)
        yield messages[-1][1]
        yield Usage(1)

    async def _wait(self, messages: Messages) -> None:
        self.begun.append(messages[-1][1])
        while not self.go.is_set():
            await asyncio.sleep(0.001)


def chats(who: str, count: int) -> list[Messages]:
    return [(("user", f"{who}{number}"),) for number in range(count)]


def in_threads(*work: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    return threads


def test_runs_in_threads_take_turns_and_a_stream_is_a_call_as_long_as_it_lasts() -> None:
    client = Gated()
    line = Line(Pool(["http://a"], 1))
    models = [Served("gated", {"http://a": client}, line) for _ in range(3)]
    a, b, c = threading.Event(), threading.Event(), threading.Event()
    threads = in_threads(lambda: models[0].complete_all(chats("a", 6), a))
    assert wait_until(lambda: client.begun == ["a0"], 5.0)
    threads += in_threads(lambda: list(models[1].stream(chats("b", 1)[0], b)))
    assert wait_until(lambda: line.ahead(b) == 1, 5.0)
    threads += in_threads(lambda: models[2].complete(chats("c", 1)[0], c))
    assert wait_until(lambda: line.ahead(c) == 2, 5.0)
    client.go.set()
    for thread in threads:
        thread.join(10.0)
    assert client.begun == ["a0", "a1", "b0", "c0", "a2", "a3", "a4", "a5"]


def test_stream_that_nobody_reads_to_its_end_gives_its_turn_back() -> None:
    client = Gated()
    client.go.set()
    model = alone(client, "http://a", 1)
    stream = model.stream(chats("a", 1)[0], threading.Event())
    assert next(stream) == "a0"
    stream.close()  # type: ignore[attr-defined]
    assert model.complete(chats("b", 1)[0], threading.Event()).text == "b0"


def test_stopped_run_leaves_the_line_of_a_real_server_and_the_next_moves_up() -> None:
    with OllamaServer(ScriptedModel(lambda messages: "fine")) as server:
        from crag_core.llms import ollama

        server.faults.delay_s = 60.0
        line = Line(Pool([server.url], 1))
        model = Served(MODEL, {server.url: ollama.client(server.url, MODEL, 20.0)}, line)
        first, second, third = (threading.Event() for _ in range(3))
        stopped: list[str] = []

        def ask(name: str, cancel: threading.Event) -> None:
            try:
                model.complete((("user", "Hello"),), cancel)
            except Stopped:
                stopped.append(name)

        threads = in_threads(lambda: ask("first", first))
        set_when(lambda: server.active == 1).wait(5.0)
        threads += in_threads(lambda: ask("second", second))
        assert wait_until(lambda: line.ahead(second) == 0, 5.0)
        threads += in_threads(lambda: ask("third", third))
        assert wait_until(lambda: line.ahead(third) == 1, 5.0)
        second.set()
        assert wait_until(lambda: line.ahead(third) == 0 and stopped == ["second"], 5.0)
        assert server.chat_calls == 1
        third.set()
        first.set()
        for thread in threads:
            thread.join(5.0)
        assert wait_until(lambda: line.pool.standings(["a"])[0].busy == 0, 5.0)
