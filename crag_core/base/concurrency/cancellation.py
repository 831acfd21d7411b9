"""Waits for work in another thread while watching a cancel flag."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TypeVar

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel

Value = TypeVar("Value")

GLANCE = 0.05
"""Seconds between two looks at a cancel flag."""


def _nobody() -> None:
    """Hears nothing."""


REPLIED: ContextVar[Callable[[], object]] = ContextVar("crag_replied", default=_nobody)
"""Hears of each reply, or failure, of the model calls that are made together here, before all of them are back."""


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
