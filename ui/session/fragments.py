"""Parts of a page that are redrawn alone: by their own widgets, by name from a callback, or by a timer.

A redraw that overtakes the page it belongs to takes effect in its own box only, a tick meant for an earlier page is
refused, and timers start when all else is drawn. Without that Streamlit overwrites what stands behind, empties the page
or loses its end (docs/faults.md).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

_P = ParamSpec("_P")
EVERY = 0.3
"""Seconds between two looks at work in the background."""
_DRAWN, _DRAWN_AT, _TICKING = "fragments", "fragments_at", "fragments_ticking"


def fragment(key: str | None = None) -> Callable[[Callable[_P, None]], Callable[_P, None]]:
    """`key`: its name in `drawn`, for one that a page has once."""

    def decorate(draw: Callable[_P, None]) -> Callable[_P, None]:
        inner = st.fragment(draw, key=key)

        @wraps(draw)
        def draw_boxed(*args: _P.args, **kwargs: _P.kwargs) -> None:
            if key:
                st.session_state.setdefault(_DRAWN, set()).add(key)
            with st.container():
                inner(*args, **kwargs)

        return draw_boxed

    return decorate


def renewed(draw: Callable[_P, None], run_every: float | None = None) -> Callable[_P, None]:
    """A fragment with a name that no other full run gives: what the page before still asks of it is refused."""

    @wraps(draw)
    def draw_renewed(*args: _P.args, **kwargs: _P.kwargs) -> None:
        draw(*args, **kwargs)

    draw_renewed.__qualname__ += f" {uuid.uuid4().hex}"  # of which Streamlit makes its id
    return st.fragment(draw_renewed, run_every=run_every)


def ticking(every: float = EVERY) -> Callable[[Callable[_P, None]], Callable[_P, None]]:
    """Drawn by `start_ticks`, then every so many seconds; st.rerun() in it redraws the page.

    Where ticks stop coming, as its mark tells, parts/ticks.js asks for the page.
    """

    def decorate(draw: Callable[_P, None]) -> Callable[_P, None]:
        @wraps(draw)
        def draw_boxed(*args: _P.args, **kwargs: _P.kwargs) -> None:
            def tick() -> None:
                st.html(f'<span data-tick="{time.monotonic_ns()}" data-every="{every:g}"></span>')
                draw(*args, **kwargs)

            st.session_state.setdefault(_TICKING, []).append((st.container(), renewed(tick, run_every=every)))

        return draw_boxed

    return decorate


def begin() -> None:
    """For app.py, at the start of a full run of the script."""
    st.session_state[_DRAWN], st.session_state[_DRAWN_AT], st.session_state[_TICKING] = set(), st.context.url, []


def start_ticks() -> None:
    """For app.py, at the end of a full run."""
    for box, tick in st.session_state.pop(_TICKING, ()):
        with box:
            tick()


def drawn() -> set[str]:
    """For a callback: the named fragments of the page; none where its message also asks for another page.

    A rerun by name takes the place of whatever the message asks for.
    """
    found: set[str] = st.session_state.get(_DRAWN, set())
    return found if st.context.url == st.session_state.get(_DRAWN_AT) else set()
