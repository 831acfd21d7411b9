"""Messages that no page sends: they may end the session that sends them, and harm no other."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from crag_core.storage.history import HistoryStore
from tests.browser.conftest import QUICK, index_texts, serve
from tests.browser.visitor import Visitor
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from ui.session.demos import demos

pytestmark = pytest.mark.browser

QUESTION = "Where are dues paid?"
PAGES = ("Ask", "Demo", "Compare", "Tune", "Logs", "Policies", "Documents", "History", "Metrics", "Settings")
NUMBERS = [0, -1, 2**62, -(2**62)]
REALS = [math.nan, math.inf, -1.0, 1e308]
VALUES = ('{"lower": NaN, "upper": "x"}', '{"lower": 1' + "0" * 400 + ', "upper": 1}', "[]", '"redraw"', "null")
PAYLOADS = ["", "{", "null", "1", '"x"', "[]", "[1, [2]]", '{"edited_rows": {"99": {"x": [1]}}}', "[" * 100_000]
PAYLOADS += [
    f'[{{"event": "{event}", "value": {value}}}]' for event in ("moved", "open", "late", "leave") for value in VALUES
]


class Sender(Visitor):
    """One that may meet errors of its own, and keeps what it was shown of them."""

    def __init__(self, url: str, tag: str) -> None:
        super().__init__(url, tag)
        self.faults: list[str] = []

    async def send(self, content: bytes | str) -> None:
        assert self._socket is not None
        await self._socket.send(content)

    async def forge(self, states: list[WidgetState], fragment: str = "") -> None:
        await self._rerun(*states, fragment=fragment)

    async def at(self, page: str) -> None:
        await self.open()
        await self.settled()
        if page != "Ask":
            await self.turn_to(page)
            await self.settled()

    @property
    def widgets(self) -> list[str]:
        """The ids of all on the page that a message can be about."""
        drawn = (getattr(node.element, node.element.WhichOneof("type")) for node in self._tree.elements())
        return [one.id for one in drawn if getattr(one, "id", "")]

    def _see(self, element: Any) -> None:
        if element.WhichOneof("type") == "exception":
            self.faults += [f"{element.exception.type} {element.exception.message}", *element.exception.stack_trace]
        else:
            super()._see(element)


def events(widget: str) -> str:
    """Of a component."""
    return f"$$STREAMLIT_INTERNAL_KEY_{widget}__events"


def states(widget: str) -> Iterator[WidgetState]:
    yield WidgetState(id=widget, trigger_value=True)
    yield WidgetState(id=widget, bool_value=True)
    yield WidgetState(id=widget, string_value="<script>\x00\u202e")
    yield WidgetState(id=widget, bytes_value=b"\xff\x00")
    yield from (WidgetState(id=widget, int_value=one) for one in NUMBERS)
    yield from (WidgetState(id=widget, double_value=one) for one in REALS)
    for kind, values in (
        ("double_array_value", REALS),
        ("int_array_value", NUMBERS),
        ("string_array_value", ["", "x"]),
    ):
        state = WidgetState(id=widget)
        getattr(state, kind).data.extend(values)
        yield state
    for payload in PAYLOADS:
        yield WidgetState(id=widget, json_value=payload)
        yield WidgetState(id=events(widget), json_trigger_value=payload)
    state = WidgetState(id=widget)
    state.file_uploader_state_value.uploaded_file_info.add(file_id="../../etc/passwd", name="../x", size=2**62)
    yield state
    state = WidgetState(id=widget)
    state.arrow_value.data = b"\xff" * 100
    yield state
    state = WidgetState(id=widget)
    state.chat_input_value.data = "x"
    yield state


ORDERS = [
    BackMsg(clear_cache=True), BackMsg(load_git_info=True), BackMsg(set_run_on_save=True), BackMsg(stop_script=True),
    BackMsg(debug_shutdown_runtime=True), BackMsg(debug_disconnect_websocket=True),
]  # fmt: skip
RAW: list[bytes | str] = [b"", b"\xff" * 100, b"\x08" * 1_000_000, "{}", b"x" * 26_000_000]


async def forge_values(sender: Sender, page: str) -> None:
    """In a tenth of the messages that it would take for each widget to have each kind of value."""
    await sender.at(page)
    kinds = len(list(states("")))
    for shift in range(0, kinds, 10):
        each = [list(states(widget))[(place + shift) % kinds] for place, widget in enumerate(sender.widgets)]
        await sender.forge([one for one in each if one.WhichOneof("value") != "trigger_value"])
        await sender.settled()
    await sender.forge(each, fragment="f" * 32)  # which is heard by nobody


async def forge_events(sender: Sender) -> None:
    """Of our own components, on the page of a run."""
    sender.query = f"run={demos()[0].trace.id}"
    await sender.at("Ask")
    found = [one.id for one in sender.elements("bidi_component")]
    assert len(found) > 4
    for payload in PAYLOADS:
        await sender.forge([WidgetState(id=events(widget), json_trigger_value=payload) for widget in found])
        await sender.settled()
    huge = json.dumps("x" * 10_000_000)
    await sender.forge([WidgetState(id=events(found[0]), json_trigger_value=huge)])
    await sender.settled()


async def attack(url: str, server: OllamaServer) -> list[str]:
    """While somebody else's run goes on; what the senders were shown."""
    neighbour = Visitor(url, "V000")
    await neighbour.open()
    await neighbour.until(lambda: neighbour.has("button", "Ask"))
    await neighbour.ask(QUESTION)
    await neighbour.until(lambda: neighbour.has("button", "Stop"))
    faults: list[str] = []
    for forge in [*(partial(forge_values, page=page) for page in PAGES), forge_events]:
        sender = Sender(url, "V001")
        await forge(sender)
        faults += sender.faults
        await sender.close()
    for content in [*(order.SerializeToString() for order in ORDERS), *RAW]:
        sender = Sender(url, "V001")
        await sender.at("Ask")
        await sender.send(content)
        await sender.reload()
        await sender.settled()
        await sender.close()
    await neighbour.reload()
    await neighbour.settled()
    assert neighbour.has("button", "Stop"), "its run is not to be found any more"
    server.engine.delay_s = 0.0  # type: ignore[attr-defined]
    await neighbour.until(lambda: neighbour.has_verdict and not neighbour.has("button", "Stop"))
    await neighbour.settled()
    await neighbour.close()
    assert neighbour.errors == []
    return faults


def test_a_forged_message_harms_the_session_that_sends_it_alone(tmp_path: Path) -> None:
    index_texts(tmp_path, dues="Dues are paid at the harbour office before eight.")
    answer = ScriptedModel(lambda messages: "Dues are paid at the harbour office [1]. " * 500, delay_s=0.5)
    with (
        OllamaServer(answer) as server,
        serve(tmp_path, program=QUICK, OLLAMA_HOST=server.url, CRAG_MODEL=f"ollama/{MODEL}") as url,
    ):
        faults = asyncio.run(attack(url, server))
        assert server.chat_calls == 1
    assert faults and not any(".py" in told or "Traceback" in told for told in faults)
    assert HistoryStore(tmp_path / "crag.db").count() == 1
