"""What every page begins with: sent through app.py, messages, and a line in place of what is not allowed.

A folder named pages/ makes Streamlit serve its files as pages of their own until st.navigation is called for the first
time in the server's life. Somebody whose link leads straight to a page could be that first one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from crag_core.base.errors import CragError
from ui import PARTS
from ui.session import access, app_state
from ui.session.fragments import renewed
from ui.shell import sign_in
from ui.shell.text import plain

_ROUTED = "router_routed"
_WANTED = "router_wanted"


def enter(page: str) -> None:
    """First line of a page: go through app.py, which may ask to sign in, when this session has not, and come back."""
    if _ROUTED not in st.session_state or not sign_in.is_passed():
        asked = {name: st.query_params.get_all(name) for name in st.query_params}
        st.session_state[_WANTED] = page, asked
        st.switch_page("app.py")


def mark_routed() -> None:
    """For app.py, once its navigation stands."""
    st.session_state[_ROUTED] = True
    wanted = st.session_state.pop(_WANTED, None)
    if wanted:
        page, asked = wanted
        st.switch_page(page, query_params=asked)


_shortcuts = st.components.v2.component(
    "shortcuts", html="<span></span>", js=(PARTS / "shortcuts.js").read_text("utf-8")
)
_ticks = st.components.v2.component("ticks", html="<span></span>", js=(PARTS / "ticks.js").read_text("utf-8"))
_NO_SIDEBAR = """<style>
@media (width >= 768px) { /* below that it holds the list of the pages */
  :is([data-testid="stSidebar"], [data-testid="stExpandSidebarButton"]) { display: none; }
}
</style>"""


def draw_frame(has_sidebar: bool) -> None:
    """Of every page: the key that leads to the question, the watch over what ticks, no sidebar where none of it acts.

    It is drawn all the same: a widget that is not drawn on one page would have lost its value on the next. Components
    without a height stand in the page as a bar while they load, and move what is below.
    """
    with st.container(key="anchor_frame"):
        _shortcuts(key="shortcuts", height=1)
        renewed(_watch_ticks)()
        if not has_sidebar:
            st.html(_NO_SIDEBAR)


def _watch_ticks() -> None:
    """A fragment, since what the page asks for from there waits for a full run that is under way."""
    if _ticks(key="ticks", height=1, data={"answer": uuid.uuid4().hex}, on_late_change=lambda: None).late == "redraw":
        st.rerun()


def draw_report() -> None:
    if problem := app_state.take_report():
        st.error(plain(problem), icon=":material/error:")


@contextmanager
def errors_drawn(title: str | None = None) -> Iterator[None]:
    """An expected error in the block is shown in its place, with what helps."""
    try:
        yield
    except CragError as error:
        st.error(plain(error.message), title=title, icon=":material/error:")
        st.caption(plain(error.hint))


def is_allowed(action: str) -> bool:
    """Whether the signed-in person is an administrator; where not, a line says who may do it."""
    if access.is_administrator():
        return True
    st.caption(f":material/lock: {plain(access.refusal(action))}")
    return False
