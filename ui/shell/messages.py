"""Messages on a page: what was reported since the last redraw, and an error in place of what cannot be drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from crag_core.base.errors import CragError
from ui.session import app_state
from ui.text import plain


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
