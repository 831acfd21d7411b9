"""A visitor of the application without a browser: speaks its WebSocket protocol, and sees what a page would show."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.browser.tree import BrokenTree, Node, Tree

PATIENCE = 300.0
"""Seconds to wait for what must come; a busy machine is no failure."""
_TAG = re.compile(rb"V\d\d\dR\d\d\d")
_IN_LINE = re.compile(r"In line: (?:(\d+) runs? before|yours)")
_MARK = re.compile(r'data-tick="(\d+)" data-every="([\d.]+)"')
_PATIENCE = 1.0
"""Seconds beyond its interval after which ui/parts/ticks.js misses a tick."""


class Visitor:
    """One browser tab. `errors` holds what should never be seen: exceptions on the page, tags of other visitors. A page
    that is broken ends the visit: from then on `until` and `settled` raise `BrokenTree`.

    Everything that comes is searched for tags, which look like V007R012: a visitor sees those that begin with its own
    `tag` only.
    """

    def __init__(self, url: str, tag: str) -> None:
        self.tag = tag
        self.errors: list[str] = []
        self.query = ""
        self.runs = 0
        """Of the script, whole ones and those of fragments."""
        self.places: list[int] = []
        """How many runs were before its own, each time that the page told it."""
        self.late: Counter[str] = Counter()
        """How often the page asked for ticks that did not come, and for itself."""
        self._url = url
        self._tree = Tree()
        self._broken: BrokenTree | None = None
        self._widgets: dict[str, WidgetState] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._ticking: set[str] = set()
        self._asked = ""
        self._is_early = False
        self._pages: dict[str, str] = {}
        self._page = ""
        self._is_idle = asyncio.Event()
        self._changed = asyncio.Event()
        self._socket: ClientConnection | None = None
        self._listening: list[asyncio.Task[None]] = []

    # --- coming and going

    async def open(self) -> None:
        """Load the page, as a new tab or after a reload with what stands in the address bar."""
        self._tree, self._broken = Tree(), None
        self._widgets.clear()
        address = self._url.replace("http://", "ws://") + "/_stcore/stream"
        self._socket = await connect(  # without pings of its own, as a browser: a busy server answers them late
            address,
            subprotocols=["streamlit"],  # type: ignore[list-item]
            max_size=None,
            open_timeout=PATIENCE,
            ping_interval=None,
        )
        self._listening = [asyncio.create_task(self._listen(self._socket)), asyncio.create_task(self._miss_ticks())]
        await self._rerun()

    async def close(self) -> None:
        """Close the tab, in the middle of whatever it is."""
        self._stop_timers()
        for task in self._listening:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if self._socket:
            await self._socket.close()
        self._socket = None

    async def reload(self) -> None:
        await self.close()
        await self.open()

    # --- doing

    async def ask(self, question: str) -> None:
        self.type("Your question", question)
        await self.press("Ask")

    def type(self, label: str, text: str) -> None:
        widget = self.one("text_input", label).id
        self._widgets[widget] = WidgetState(id=widget, string_value=text)

    async def press(self, label: str) -> None:
        """Once it can be pressed."""
        await self.until(lambda: self.has("button", label) and not self.one("button", label).disabled)
        widget = self.one("button", label).id
        await self._rerun(WidgetState(id=widget, trigger_value=True), fragment=self._fragment_of(widget))

    async def slide(self, label: str, *values: float) -> None:
        state = WidgetState(id=self.one("slider", label).id)
        state.double_array_value.data.extend(values)
        self._widgets[state.id] = state
        await self._rerun(fragment=self._fragment_of(state.id))

    async def choose(self, label: str, option: str) -> None:
        found = self.one("selectbox", label)
        if option not in found.options:
            raise AssertionError(f"{self.tag}: expected {label} {option!r}, found {list(found.options)}")
        self._widgets[found.id] = WidgetState(id=found.id, string_value=option)
        await self._rerun()

    async def turn_to(self, page: str) -> None:
        """A page by its title."""
        self._page = next(key for key, title in self._pages.items() if title == page)
        await self._rerun()

    # --- seeing

    @property
    def run_id(self) -> str:
        """Of the run on the page."""
        return parse_qs(self.query).get("run", [""])[0]

    def elements(self, kind: str) -> Iterator[Any]:
        for node in self._tree.elements():
            if node.element.WhichOneof("type") == kind:
                yield getattr(node.element, kind)

    def one(self, kind: str, label: str) -> Any:
        found = [element for element in self.elements(kind) if element.label == label]
        if len(found) != 1:
            there = [element.label for element in self.elements(kind)]
            raise AssertionError(f"{self.tag}: expected one {kind} {label!r}, found {len(found)} among {there}")
        return found[0]

    def has(self, kind: str, label: str) -> bool:
        return any(element.label == label for element in self.elements(kind))

    @property
    def text(self) -> str:
        """All words on the page."""
        parts = [*(one.body for one in self.elements("markdown")), *(one.body for one in self.elements("heading"))]
        parts += [one.body for one in self.elements("alert")]
        parts += [one.json or one.mixed.json for one in self.elements("bidi_component")]
        return "\n".join(parts).replace("\\", "")

    @property
    def has_verdict(self) -> bool:
        return any(one.tag == "h2" for one in self.elements("heading"))

    async def until(self, is_so: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Wait for something to be seen when the script has run; raises TimeoutError with what is there."""
        try:
            async with asyncio.timeout(patience):
                self._stand()
                while not is_so():
                    self._changed.clear()
                    await self._changed.wait()
                    self._stand()
        except TimeoutError:
            raise TimeoutError(f"{self.tag}: not seen within {patience:.0f} s; there is\n{self.text[:2000]}") from None

    async def settled(self) -> None:
        """Wait until the script has run to its end for what was done last; a tick in between is no end."""
        await asyncio.wait_for(self._is_idle.wait(), PATIENCE)
        self._stand()

    def _stand(self) -> None:
        if self._broken:
            raise self._broken

    # --- the protocol

    async def _rerun(self, *triggers: WidgetState, fragment: str = "", is_auto: bool = False) -> None:
        state = ClientState(query_string=self.query, page_script_hash=self._page, fragment_id=fragment)
        state.is_auto_rerun = is_auto
        state.context_info.timezone = "UTC"
        state.context_info.locale = "en-GB"
        state.context_info.url = self._url
        state.widget_states.widgets.extend([*self._widgets.values(), *triggers])
        if not is_auto:
            self._asked = fragment
            self._is_idle.clear()
        assert self._socket is not None
        await self._socket.send(BackMsg(rerun_script=state).SerializeToString())

    async def _listen(self, socket: ClientConnection) -> None:
        try:
            async for data in socket:
                assert isinstance(data, bytes)
                self._look_for_others(data)
                self._take(ForwardMsg.FromString(data))
        except ConnectionClosed:
            pass
        self.errors.append("disconnected by the server")
        self._changed.set()

    def _look_for_others(self, data: bytes) -> None:
        for tag in set(_TAG.findall(data)):
            if not tag.decode().startswith(self.tag):
                self.errors.append(f"saw {tag.decode()}")

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        try:
            self._tree.take(message)
        except BrokenTree as error:
            self._broken = self._broken or BrokenTree(f"{self.tag}: {error}")
            self._is_idle.set()
            self._changed.set()
        if kind == "new_session":
            self._begin(message)
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._see(message.delta.new_element)
        elif kind == "script_finished":
            self._finish(message)
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
            self._changed.set()
        elif kind == "navigation":
            self._pages = {page.page_script_hash: page.page_name for page in message.navigation.app_pages}
            self._page = message.navigation.page_script_hash
        elif kind == "auto_rerun":
            rerun = message.auto_rerun
            self._ticking.add(rerun.fragment_id)
            if rerun.fragment_id not in self._timers:
                self._timers[rerun.fragment_id] = asyncio.create_task(self._tick(rerun.fragment_id, rerun.interval))
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                if timer := self._timers.pop(fragment, None):
                    timer.cancel()
        elif kind == "session_event" and message.session_event.HasField("script_compilation_exception"):
            self.errors.append(message.session_event.script_compilation_exception.message)

    def _begin(self, message: ForwardMsg) -> None:
        self.runs += 1
        fragments = message.metadata.run.fragment_ids
        if not fragments:
            self._is_idle.clear()
            self._stop_timers()
        elif self._is_early and self._asked not in fragments:  # early was only what the queue said
            self._is_idle.set()
        self._is_early = False

    def _see(self, element: Any) -> None:
        kind = element.WhichOneof("type")
        if kind == "exception":
            self.errors.append(f"{element.exception.type}: {element.exception.message}")
        drawn = getattr(element, kind)
        if getattr(drawn, "set_value", False):  # the server knows better what stands there
            self._widgets.pop(drawn.id, None)

    def _finish(self, message: ForwardMsg) -> None:
        fragments = set(message.metadata.run.fragment_ids)
        if message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            self._is_early = self._asked in fragments
            return
        if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
            self.errors.append("the script does not compile")
        for one in self.elements("markdown"):
            if found := _IN_LINE.search(one.body.replace("\\", "")):
                self.places.append(int(found[1] or 0))
        if not fragments or self._asked in fragments or not fragments <= self._ticking:
            self._is_idle.set()
        self._changed.set()

    def _fragment_of(self, widget: str) -> str:
        return next((node.fragment for node in self._tree.elements() if _id_of(node) == widget), "")

    async def _tick(self, fragment: str, seconds: float) -> None:
        with suppress(ConnectionClosed):
            while True:
                await asyncio.sleep(seconds)
                await self._rerun(fragment=fragment, is_auto=True)

    def _stop_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def _miss_ticks(self) -> None:
        """As ui/parts/ticks.js does."""
        waits: dict[str, _Wait] = {}
        while True:
            await asyncio.sleep(0.25)
            now = asyncio.get_running_loop().time()
            marks = [found for one in self.elements("html") if (found := _MARK.search(one.body))]
            waits = {one[1]: waits.get(one[1]) or _Wait(now + float(one[2]) + _PATIENCE) for one in marks}
            watch = next((one for one in self.elements("bidi_component") if one.component_name == "ticks"), None)
            wanted = max((wait.look(now, watch.json) for wait in waits.values()), default="") if watch else ""
            if watch and wanted:
                waits = {} if wanted == "redraw" else waits
                self.late[wanted] += 1
                events = json.dumps([{"event": "late", "value": wanted}])
                state = WidgetState(id=f"$$STREAMLIT_INTERNAL_KEY_{watch.id}__events", json_trigger_value=events)
                fragment = self._fragment_of(watch.id)
                self._ticking.add(fragment)
                with suppress(ConnectionClosed):
                    await self._rerun(state, fragment=fragment, is_auto=True)


@dataclass
class _Wait:
    """For the tick after one."""

    due: float
    patience: float = _PATIENCE
    asked: str | None = None
    is_answered: bool = False

    def look(self, now: float, answer: str) -> str:
        """What is wanted, the strongest last in the order of letters."""
        if self.is_answered:
            return "redraw"
        if self.asked is not None and self.asked != answer:
            self.is_answered = True
        elif self.due < now:
            self.asked, self.patience = answer, 2 * self.patience
            self.due = now + self.patience
            return "ask"
        return ""


def _id_of(node: Node) -> str:
    return str(getattr(getattr(node.element, node.element.WhichOneof("type")), "id", ""))
