"""Takes Ctrl-C and SIGTERM over from Streamlit, for an orderly shutdown."""

from __future__ import annotations

import asyncio
from threading import Event

from streamlit import runtime

from crag_core.base.concurrency.shutdown import end_on_signals

_PATIENCE_S = 10.0
_taken = Event()


def take_signals() -> bool:
    """Once a process, before anything heavy is imported; False where Streamlit ends already."""
    if _taken.is_set():
        return True
    loop = runtime.get_instance().stopped.get_loop() if runtime.exists() else None  # type: ignore[attr-defined]
    if not isinstance(loop, asyncio.AbstractEventLoop):  # a test without a server
        return True

    def take() -> None:  # only the main thread may, and its loop runs there
        if not _taken.is_set():
            end_on_signals()
            _taken.set()

    try:
        loop.call_soon_threadsafe(take)
    except RuntimeError:
        return False
    return _taken.wait(_PATIENCE_S)
