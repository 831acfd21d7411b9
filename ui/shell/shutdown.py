"""Takes Ctrl-C and SIGTERM over from Streamlit, for an orderly shutdown."""

from __future__ import annotations

import asyncio
from functools import cache
from threading import Event

import streamlit as st
from streamlit import runtime

from crag_core.base.concurrency.shutdown import end_on_signals

_PATIENCE_S = 10.0


@cache
def take_signals() -> None:
    """Once a process, before anything heavy is imported; where Streamlit ends already, this script goes no further."""
    loop = runtime.get_instance().stopped.get_loop() if runtime.exists() else None  # type: ignore[attr-defined]
    if not isinstance(loop, asyncio.AbstractEventLoop):  # a test without a server
        return
    taken = Event()

    def take() -> None:  # only the main thread may, and its loop runs there
        end_on_signals()
        taken.set()

    try:
        loop.call_soon_threadsafe(take)
    except RuntimeError:
        st.stop()
    if not taken.wait(_PATIENCE_S):
        st.stop()
