"""Waiting for work in another thread, with an eye on the cancel flag."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

from crag_core.errors import Stopped
from crag_core.protocols import Cancel

Value = TypeVar("Value")

GLANCE = 0.05
"""Seconds between two looks at a cancel flag."""


def wait_for(future: Future[Value], cancel: Cancel) -> Value:
    """What the work returns or raises; `Stopped` once `cancel` is set, and then the work is cancelled if it can be."""
    while True:
        try:
            return future.result(timeout=GLANCE)
        except TimeoutError:
            if future.done():  # it ended just now, or raised a TimeoutError of its own
                return future.result()
            if cancel.is_set():
                future.cancel()
                raise Stopped("Stopped by you.") from None
