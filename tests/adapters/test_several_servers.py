"""One model on several real servers: calls are spread, a server that fails costs no reply, and it is used again."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from crag_core.base.errors import ModelMissing, ModelUnavailable, Stopped
from crag_core.base.protocols import Cancel, Messages, Reply
from crag_core.base.types import Usage
from crag_core.llms import ollama, openai_compatible
from crag_core.llms.call_queue import Line
from crag_core.llms.model import ALONE, Call, LlamaIndexModel, LoopModel
from crag_core.llms.pooled_model import Served
from crag_core.llms.server_pool import Pool
from crag_core.llms.servers import Standing, shown
from tests.fakes import Hand, set_when
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.local_server import wait_until
from tests.stand_ins.model_server import ModelServer
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.openai_server import OpenAIServer

NAME = "llama3.2"
CHAT: Messages = (("user", "Who was Alan Turing?"),)
LONG = "word " * 400
HANGING = 60.0

Servers = Sequence[ModelServer]


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture(params=[OllamaServer, OpenAIServer], ids=["ollama", "openai"])
def start(request: pytest.FixtureRequest) -> Iterator[Callable[[int], list[ModelServer]]]:
    """Starts so many servers that echo what they are asked."""
    with ExitStack() as stack:

        def start_servers(count: int) -> list[ModelServer]:
            return [stack.enter_context(request.param(echo(), models=[NAME])) for _ in range(count)]

        yield start_servers


def echo(delay_s: float = 0.0) -> ScriptedModel:
    return ScriptedModel(lambda messages: f"to {messages[-1]['content']}", delay_s=delay_s)


def url_of(server: ModelServer) -> str:
    return server.api_base if isinstance(server, OpenAIServer) else server.url


def line_of(servers: Servers, at_once: int = 2, clock: Hand | None = None) -> Line:
    return Line(Pool([url_of(server) for server in servers], at_once, clock or Hand()))


def model_on(servers: Servers, line: Line, key: str = "", impatient_with: ModelServer | None = None) -> Served:
    clients = {url_of(server): client_of(server, key, 0.1 if server is impatient_with else 20.0) for server in servers}
    return Served(NAME, clients, line)


def client_of(server: ModelServer, key: str = "", timeout: float = 20.0) -> LlamaIndexModel:
    if isinstance(server, OpenAIServer):
        return openai_compatible.client(url_of(server), NAME, key, timeout)
    return ollama.client(server.url, NAME, timeout)


def chats(count: int) -> list[Messages]:
    return [(("user", str(number)),) for number in range(count)]


def texts(replies: Sequence[Reply | Exception]) -> list[str]:
    return [reply.text if isinstance(reply, Reply) else repr(reply) for reply in replies]


def calls(servers: Servers) -> list[int]:
    return [server.chat_calls for server in servers]


def standings(line: Line) -> tuple[Standing, ...]:
    return line.pool.standings([shown(url) for url in line.pool.servers])


def is_idle(line: Line) -> bool:
    """Every turn was given back; a call that is cancelled does so a moment later."""
    return wait_until(lambda: not any(one.busy for one in standings(line)), 5.0)


def no_cancel() -> threading.Event:
    return threading.Event()


Start = Callable[[int], list[ModelServer]]

# --- while all is well ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3])
def test_calls_go_in_turn(start: Start, count: int) -> None:
    servers = start(count)
    model = model_on(servers, line_of(servers))
    assert model.name == NAME
    for _ in range(3 * count):
        assert model.complete(CHAT, no_cancel()) == Reply("to Who was Alan Turing?", Usage(1, 4, 6))
    assert calls(servers) == [3] * count


def test_batch_is_spread_and_keeps_its_order(start: Start) -> None:
    servers = start(3)
    line = line_of(servers)
    schema = {"type": "object"}
    replies = model_on(servers, line).complete_all(chats(12), no_cancel(), schema)
    assert texts(replies) == [f"to {number}" for number in range(12)]
    assert sum(calls(servers)) == 12 and min(calls(servers)) >= 2
    assert [one.served for one in standings(line)] == calls(servers)
    assert all(ask.schema == schema for server in servers for ask in server.engine.asks)


def test_streams_go_in_turn_with_their_usage(start: Start) -> None:
    servers = start(2)
    model = model_on(servers, line_of(servers))
    for _ in range(4):
        *pieces, usage = model.stream(CHAT, no_cancel())
        assert "".join(map(str, pieces)) == "to Who was Alan Turing?"
        assert usage == Usage(1, 4, 6)
    assert calls(servers) == [2, 2]


def test_slow_server_gets_less_to_do(start: Start) -> None:
    slow, quick = servers = start(2)
    is_time = set_when(lambda: quick.chat_calls == 7 and quick.active == 0)
    slow.engine = ScriptedModel(lambda messages: "late" if is_time.wait(10.0) else "too late")
    replies = model_on(servers, line_of(servers, 1)).complete_all(chats(8), no_cancel())
    assert calls(servers) == [1, 7]
    assert sorted(texts(replies))[0] == "late" and len([text for text in texts(replies) if text == "late"]) == 1


# --- a server that fails --------------------------------------------------------------------------------------------


def test_server_killed_in_the_middle_of_a_batch_costs_no_reply(start: Start) -> None:
    dying, _ = servers = start(2)
    dying.faults.delay_s = HANGING
    line = line_of(servers)
    killer = threading.Thread(target=lambda: wait_until(lambda: dying.active == 2, 5.0) and dying.stop())
    killer.start()
    replies = model_on(servers, line).complete_all(chats(10), no_cancel())
    killer.join()
    assert texts(replies) == [f"to {number}" for number in range(10)]
    assert calls(servers) == [2, 10], "both calls that were lost were made again"
    assert sum(reply.usage.calls for reply in replies if isinstance(reply, Reply)) == 12, "and all are on the bill"
    left_out, used = standings(line)
    assert (left_out.failures, left_out.seconds) == (1, 5.0) and "went away" in left_out.reason
    assert (used.failures, used.served) == (0, 10)


FAULTS = [{"status": 500}, {"status": 503}, {"status": 429}, {"die_after": 0}, {"broken_after": 0}, {"delay_s": 5.0}]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_call_that_a_server_fails_is_asked_of_the_other(start: Start, fault: dict[str, float]) -> None:
    bad, _ = servers = start(2)
    for name, value in fault.items():
        setattr(bad.faults, name, value)
    line = line_of(servers)
    model = model_on(servers, line, impatient_with=bad if "delay_s" in fault else None)
    assert texts(model.complete_all([CHAT], no_cancel())) == ["to Who was Alan Turing?"]
    assert [one.failures for one in standings(line)] == [1, 0]
    model.complete(CHAT, no_cancel())
    assert calls(servers) == [1, 2], "it is left out from then on"


def test_server_that_comes_back_is_used_again(start: Start, clock: Hand) -> None:
    ill, _ = servers = start(2)
    line = line_of(servers, clock=clock)
    model = model_on(servers, line)
    ill.stop()
    model.complete_all(chats(4), no_cancel())
    ill.start()
    for _ in range(3):
        model.complete(CHAT, no_cancel())
    assert calls(servers) == [0, 7], "not before its time"
    clock.now += 5.0
    for _ in range(4):
        model.complete(CHAT, no_cancel())
    assert calls(servers) == [2, 9]
    assert [one.failures for one in standings(line)] == [0, 0]


def test_server_that_stays_away_is_tried_once_in_a_while(start: Start, clock: Hand) -> None:
    ill, _ = servers = start(2)
    ill.faults.status = 500
    line = line_of(servers, clock=clock)
    model = model_on(servers, line)
    for tried, after in enumerate([0.0, 5.0, 10.0, 20.0], start=1):
        clock.now += after
        assert texts(model.complete_all(chats(6), no_cancel())) == [f"to {number}" for number in range(6)]
        # Two went there together at first, before anybody knew.
        assert ill.chat_calls == tried + 1


def test_request_that_fails_everywhere_fails_alone(start: Start) -> None:
    servers = start(2)

    def reply(messages: Sequence[dict[str, str]]) -> str:
        if messages[-1]["content"] == "2":
            raise RuntimeError("out of memory")
        return "fine"

    for server in servers:
        server.engine = ScriptedModel(reply)  # type: ignore[arg-type]
    replies = model_on(servers, line_of(servers, 1)).complete_all(chats(6), no_cancel())
    assert isinstance(replies[2], ModelUnavailable)
    assert [text for place, text in enumerate(texts(replies)) if place != 2] == ["fine"] * 5
    assert sum(calls(servers)) == 7, "once on each server, and no more"


def test_request_that_is_refused_is_asked_elsewhere_and_leaves_nobody_out(start: Start) -> None:
    strict, lenient = servers = start(2)
    strict.faults.status = 400
    line = line_of(servers)
    for _ in range(2):
        model_on(servers, line).complete(CHAT, no_cancel())
    assert [one.failures for one in standings(line)] == [0, 0]
    assert calls(servers) == [2, 2], "it is asked again when its turn comes"
    lenient.faults.status = 400
    with pytest.raises(ModelUnavailable, match="None of the 2 model servers could answer"):
        model_on(servers, line).complete(CHAT, no_cancel())


def test_server_that_refuses_the_key_is_left_out_with_that_reason() -> None:
    with OpenAIServer(echo(), models=[NAME]) as strict, OpenAIServer(echo(), models=[NAME]) as other:
        strict.faults.status = 401
        line = line_of([strict, other])
        for _ in range(3):
            model_on([strict, other], line, key="s3cret").complete(CHAT, no_cancel())
        assert calls([strict, other]) == [1, 3]
    assert standings(line)[0].reason == f"The server at {strict.url} refused the key."


def test_when_all_fail_each_is_named_with_its_reason(start: Start) -> None:
    down, broken, slow = servers = start(3)
    down.stop()
    broken.faults.status = 500
    slow.faults.delay_s = HANGING
    line = line_of(servers)
    model = model_on(servers, line, impatient_with=slow)
    for ask in (lambda: model.complete(CHAT, no_cancel()), lambda: list(model.stream(CHAT, no_cancel()))):
        with pytest.raises(ModelUnavailable) as failed:
            ask()
        first, *told = failed.value.message.splitlines()
        assert first == "None of the 3 model servers could answer."
        for server, words in zip(servers, ("went away", "failed", "did not begin to answer"), strict=True):
            assert any(server.url in one and words in one for one in told), told
        assert failed.value.retryable and "Start it" in failed.value.hint
    assert is_idle(line)


def test_password_of_an_address_is_in_no_message() -> None:
    urls = [f"http://me:s3cret@127.0.0.1:{port}/v1" for port in (9, 10)]
    line = Line(Pool(urls, 1))
    for make in (
        lambda url: openai_compatible.client(url, NAME, "", 5.0),
        lambda url: ollama.client(url, NAME, 5.0),
    ):
        model = Served(NAME, {url: make(url) for url in urls}, line)
        with pytest.raises(ModelUnavailable) as failed:
            model.complete(CHAT, no_cancel())
        assert "http://127.0.0.1:9 " in failed.value.message
        assert "s3cret" not in str(failed.value) + repr(standings(line))
    for state in (openai_compatible.look(urls[0], timeout=0.5), ollama.look(urls[0], timeout=0.5)):
        assert "http://127.0.0.1:9" in state.message and "s3cret" not in repr(state)


# --- a server without the model -------------------------------------------------------------------------------------


def test_server_without_the_model_is_asked_for_it_once(start: Start) -> None:
    without, _ = servers = start(2)
    without.models = []
    line = line_of(servers)
    for _ in range(4):
        assert model_on(servers, line).complete(CHAT, no_cancel()).text
    assert calls(servers) == [1, 4]
    assert [one.failures for one in standings(line)] == [0, 0], "it is well"


def test_model_that_nobody_has_is_missing(start: Start) -> None:
    servers = start(2)
    had = servers[1].models
    for server in servers:
        server.models = []
    model = model_on(servers, line_of(servers))
    for _ in range(2):
        with pytest.raises(ModelMissing) as failed:
            model.complete(CHAT, no_cancel())
        assert failed.value.message.splitlines()[0] == f"None of the 2 model servers has the model {NAME!r}."
        assert all(server.url in failed.value.message for server in servers)
    servers[1].models = had
    with pytest.raises(ModelMissing):
        list(model_on(servers[:1], line_of(servers[:1])).stream(CHAT, no_cancel()))
    assert texts(model.complete_all([CHAT], no_cancel())) == ["to Who was Alan Turing?"], "somebody has it now"


# --- streams --------------------------------------------------------------------------------------------------------


def test_stream_that_fails_before_its_first_piece_goes_to_the_next(start: Start) -> None:
    bad, _ = servers = start(2)
    bad.faults.die_after = 0
    line = line_of(servers)
    *pieces, usage = model_on(servers, line).stream(CHAT, no_cancel())
    assert "".join(map(str, pieces)) == "to Who was Alan Turing?"
    assert usage == Usage(2, 4, 6), "the call that was lost is on the bill"
    assert calls(servers) == [1, 1] and standings(line)[0].failures == 1


def test_stream_killed_after_its_first_piece_is_not_begun_again(start: Start) -> None:
    dying, other = servers = start(2)
    dying.engine = ScriptedModel(lambda messages: LONG, piece_chars=5, delay_s=0.01)
    line = line_of(servers)
    model = model_on(servers, line)
    pieces: list[str | Usage] = []
    with pytest.raises(ModelUnavailable, match="went away") as failed:
        for piece in model.stream(CHAT, no_cancel()):
            if not pieces:
                dying.stop()
            pieces.append(piece)
    assert pieces[0] == "word " and "None of" not in failed.value.message
    assert other.chat_calls == 0, "what was written would have been written twice"
    assert [one.failures for one in standings(line)] == [1, 0]
    assert "".join(map(str, model.stream(CHAT, no_cancel()))).startswith("to Who")
    assert other.chat_calls == 1


def test_stream_that_is_closed_gives_its_turn_back(start: Start) -> None:
    servers = start(2)
    for server in servers:
        server.engine = ScriptedModel(lambda messages: LONG, piece_chars=5, delay_s=0.01)
    line = line_of(servers)
    stream = model_on(servers, line).stream(CHAT, no_cancel())
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert servers[0].wait_for_disconnects()
    assert is_idle(line) and standings(line)[0].failures == 0


# --- cancelling, and several at once --------------------------------------------------------------------------------


def test_cancel_stops_calls_under_way_and_those_that_wait(start: Start) -> None:
    servers = start(2)
    for server in servers:
        server.faults.delay_s = HANGING
    line = line_of(servers)
    with pytest.raises(Stopped):
        model_on(servers, line).complete_all(
            chats(9), set_when(lambda: [server.active for server in servers] == [2, 2])
        )
    assert all(server.wait_for_disconnects(2) for server in servers)
    assert calls(servers) == [2, 2], "no server had more than its share, and what waited was never sent"
    assert is_idle(line) and [one.failures for one in standings(line)] == [0, 0]
    for server in servers:
        server.faults.clear()
    assert texts(model_on(servers, line).complete_all(chats(5), no_cancel())) == [f"to {n}" for n in range(5)]


def test_stream_that_waits_for_a_busy_server_can_be_cancelled(start: Start) -> None:
    servers = start(2)
    for server in servers:
        server.faults.delay_s = HANGING
    line = line_of(servers, 1)
    over = threading.Event()

    def fill() -> None:
        with pytest.raises(Stopped):
            model_on(servers, line).complete_all(chats(2), over)

    filling = threading.Thread(target=fill)
    filling.start()
    assert wait_until(lambda: [server.active for server in servers] == [1, 1], 5.0)
    for ask in ("stream", "complete"):
        waiting = threading.Event()
        waiting.set()
        with pytest.raises(Stopped):
            list(getattr(model_on(servers, line), ask)(CHAT, waiting))
    assert calls(servers) == [1, 1], "neither was sent, and neither ended the calls of the other"
    assert filling.is_alive()
    over.set()
    filling.join()
    assert is_idle(line)


class Watched(LoopModel):
    """Counts the calls under way, those of all models that are given the same counter."""

    def __init__(self, model: LoopModel, under_way: list[int]) -> None:
        self._model = model
        self._under_way = under_way
        self.most: list[int] = []

    async def ask(
        self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None, call: Call = ALONE
    ) -> Reply | Exception:
        self._under_way.append(1)
        self.most.append(len(self._under_way))
        try:
            return await self._model.ask(messages, cancel, schema, call)
        finally:
            self._under_way.pop()

    def pieces(
        self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None, call: Call = ALONE
    ) -> AsyncGenerator[str | Usage, None]:
        return self._model.pieces(messages, cancel, schema, call)


def test_runs_in_several_threads_share_servers_and_places(start: Start) -> None:
    servers = start(2)
    line = line_of(servers, 1)
    under_way: dict[str, list[int]] = {url_of(server): [] for server in servers}
    watched: list[Watched] = []
    told: list[list[str]] = []

    def ask() -> None:
        own = {url_of(server): Watched(client_of(server), under_way[url_of(server)]) for server in servers}
        watched.extend(own.values())
        told.append(texts(Served(NAME, own, line).complete_all(chats(10), no_cancel())))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [[f"to {number}" for number in range(10)]] * 3
    assert sum(calls(servers)) == 30 and min(calls(servers)) > 0
    assert max(count for one in watched for count in one.most) == 1, "each server had one call at a time"
    assert [one.served for one in standings(line)] == calls(servers)


def test_bug_in_a_client_is_let_through_and_gives_its_turn_back() -> None:
    broken = LlamaIndexModel(object(), "broken")  # type: ignore[arg-type]
    line = Line(Pool(["http://a", "http://b"], 1))
    model = Served("broken", {"http://a": broken, "http://b": broken}, line)
    for _ in range(3):
        with pytest.raises(AttributeError):
            model.complete(CHAT, no_cancel())
        with pytest.raises(AttributeError):
            list(model.stream(CHAT, no_cancel()))
    assert is_idle(line)
