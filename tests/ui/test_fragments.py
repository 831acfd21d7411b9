"""Parts of a page that are redrawn alone, on a server under load: its messages leave late, and ticks come meanwhile.

`plain` is Streamlit 1.67 without our boxes and names: the smallest reproduction of what docs/faults.md tells. Once its
cases fail, they have been mended there.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner.script_cache import ScriptCache

from tests.browser.tree import BrokenTree, Tree

ROOT = Path(__file__).parents[2]
PAGE = """
import streamlit as st
from ui.session.fragments import begin, fragment, renewed, start_ticks, ticking

@{kind}
def first():
    st.text("first")

@{kind}
def second():
    st.text("second")

begin()
first()
st.text("behind the first")
with st.container(border=True):
    second()
    st.text("behind the second")
start_ticks()
"""
TURNED = """
import streamlit as st
from ui.session import fragments

@fragments.fragment("part")
def part():
    st.slider("Slider", 0, 10, key="slider", on_change=lambda: st.rerun(sorted(fragments.drawn()) or "app"))
    st.text("part")

def one():
    st.text("one")
    part()

def two():
    st.text("two")

page = st.navigation([st.Page(one, default=True), st.Page(two)])
fragments.begin()
page.run()
"""
KINDS = {"plain": "st.fragment(run_every=60)", "ticking": "ticking(60)", "renewed": "renewed", "named": "fragment()"}
WHOLE = ["first", "behind the first", "second", "behind the second"]


class Tab:
    """One session of the real server, and what its browser makes of the messages; they leave when the test says so."""

    def __init__(self, page: Path) -> None:
        data = ScriptData(str(page), is_hello=False)
        self._session = AppSession(data, MemoryUploadedFileManager("/upload"), ScriptCache(), None, {})
        self._tree = Tree()
        self.pages: dict[str, str] = {}
        self.ends = 0
        """Of full runs, as far as the browser knows."""

    @property
    def fragments(self) -> list[str]:
        return list(self._session._fragment_storage._fragments)  # type: ignore[attr-defined]

    def elements(self, kind: str) -> list[Any]:
        found = [node.element for node in self._tree.elements()]
        return [getattr(one, kind) for one in found if one.WhichOneof("type") == kind]

    @property
    def shown(self) -> list[str]:
        return [text.body for text in self.elements("text")]

    def ask(self, fragment: str = "", page: str = "", *widgets: WidgetState) -> None:
        asked = ClientState(fragment_id=fragment, page_script_hash=self.pages.get(page, self._tree.page or ""))
        asked.context_info.url = "http://localhost"
        asked.widget_states.widgets.extend(widgets)
        self._session.request_rerun(asked)

    async def run(self, fragment: str = "", page: str = "", *widgets: WidgetState) -> None:
        """Until the server has done all of it; nothing is sent."""
        self.ask(fragment, page, *widgets)
        while self._session._scriptrunner is not None:
            await asyncio.sleep(0.01)

    def run_while_the_server_is_late(self) -> None:
        """A full run that is done, and of which the server's event loop has seen nothing."""
        self.ask()
        runner = self._session._scriptrunner
        assert runner is not None and runner._script_thread is not None
        runner._script_thread.join()

    def send(self) -> list[ForwardMsg]:
        messages = self._session.flush_browser_queue()
        for message in messages:
            self._tree.take(message)
            self.pages |= {one.page_name: one.page_script_hash for one in message.navigation.app_pages}
            is_end = message.WhichOneof("type") == "script_finished"
            self.ends += is_end and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
        return messages


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Runtime, "_instance", MagicMock())
    yield


def on_a_page(tmp_path: Path, script: str, attend: Callable[[Tab, list[str]], Awaitable[None]]) -> None:
    """`attend` is given a tab whose page is drawn, and the fragments that its browser knows."""
    page = tmp_path / "page.py"
    page.write_text(script, "utf-8")

    async def visit() -> None:
        tab = Tab(page)
        await tab.run()
        tab.send()
        await attend(tab, tab.fragments)

    asyncio.run(visit())


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_redraw_that_overtakes_the_page(tmp_path: Path, kind: str, place: int) -> None:
    """The page is drawn anew, and before any of it is sent the browser asks for a part of the one it knows."""

    async def attend(tab: Tab, known: list[str]) -> None:
        await tab.run()
        await tab.run(known[place])
        tab.send()
        assert tab.shown == WHOLE

    script = PAGE.format(kind=KINDS[kind])
    with pytest.raises(BrokenTree) if kind == "plain" else nullcontext():
        on_a_page(tmp_path, script, attend)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tick_that_comes_before_the_server_has_heard_of_the_end(tmp_path: Path, kind: str) -> None:
    """`named` has no timer; a click in it has the same effect, and ui/parts/ticks.js is for what is left."""

    async def attend(tab: Tab, known: list[str]) -> None:
        tab.run_while_the_server_is_late()
        await tab.run(known[0])
        tab.send()
        assert tab.ends == (2 if kind in ("ticking", "renewed") else 1)

    on_a_page(tmp_path, PAGE.format(kind=KINDS[kind]), attend)


def test_a_browser_hears_of_timers_when_all_else_is_drawn(tmp_path: Path) -> None:
    """Before, a tick of the same page could come while its end was still waiting."""

    async def attend(tab: Tab, known: list[str]) -> None:
        await tab.run()
        messages = tab.send()
        start = next(n for n, one in enumerate(messages) if one.HasField("auto_rerun"))
        later = [one.delta for one in messages[start:] if one.HasField("delta")]
        assert later and all(delta.fragment_id for delta in later)

    on_a_page(tmp_path, PAGE.format(kind=KINDS["ticking"]), attend)


@pytest.mark.parametrize(("page", "shown"), [("", ["one", "part"]), ("two", ["two"])])
def test_a_page_is_turned_though_its_message_has_a_slider_that_was_not_heard_of(
    tmp_path: Path, page: str, shown: list[str]
) -> None:
    async def attend(tab: Tab, known: list[str]) -> None:
        state = WidgetState(id=tab.elements("slider")[0].id)
        state.double_array_value.data.append(3)
        await tab.run("" if page else known[0], page, state)
        tab.send()
        assert tab.shown == shown and tab.ends == (2 if page else 1), "the whole page only where it is another"

    on_a_page(tmp_path, TURNED, attend)


def test_every_fragment_of_the_application_is_one_of_these() -> None:
    sources = [ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "ui").rglob("*.py")]
    own = [
        path.relative_to(ROOT).as_posix()
        for path in sources
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "fragment" and ast.unparse(node.value) == "st"
    ]
    assert set(own) == {"ui/session/fragments.py"}


def test_no_click_on_a_file_draws_the_page_anew() -> None:
    """A redraw that begins with the click can take the file away before the browser has asked for it."""
    sources = [*sorted((ROOT / "ui").rglob("*.py")), *sorted((ROOT / "pages").glob("*.py")), ROOT / "app.py"]
    offers = [
        (f"{path.name}:{node.lineno}", {one.arg: ast.unparse(one.value) for one in node.keywords})
        for path in sources
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("download_button")
    ]
    assert len(offers) >= 8
    assert [where for where, given in offers if given.get("on_click") != "'ignore'"] == []
