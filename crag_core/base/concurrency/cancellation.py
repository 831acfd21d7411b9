"""Waits for work of other threads while watching a cancel flag, and the one event loop of all model calls and searches.

A synchronous HTTP read cannot be interrupted from another thread; an awaited one can, and closes its connection.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel, Messages

Value = TypeVar("Value")

POLL_SECONDS = 0.05


REPLIED: ContextVar[Callable[[], object]] = ContextVar("crag_replied", default=lambda: None)
"""Hears of each reply, or failure, of the model calls that are made together here, before all of them are back."""


SENT: ContextVar[list[Messages] | None] = ContextVar("crag_sent", default=None)
"""Gets each chat that a model call sends, as often as it is sent."""


def wait_for(work: Future[Value] | Coroutine[Any, Any, Value], cancel: Cancel) -> Value:
    """What the work returns or raises; a coroutine runs on the loop. `Stopped` once `cancel` is set.

    Then the work is cancelled; a thread that is at work already is left to its own end.
    """
    future = work if isinstance(work, Future) else asyncio.run_coroutine_threadsafe(work, _loop())
    while True:
        try:
            return future.result(timeout=POLL_SECONDS)
        except TimeoutError:
            if future.done():  # it ended just now, or raised a TimeoutError of its own
                return future.result()
            if cancel.is_set():
                future.cancel()
                raise Stopped() from None


def run(work: Coroutine[Any, Any, Value]) -> Value:
    """Run `work`, which has an end of its own, on the loop and return its value."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


async def apart(work: Awaitable[Value]) -> Value:
    """Await `work` in a task of its own, which closes its connection even where the awaiting task is cancelled twice.

    A time limit and a cancelled batch may meet: the second cancellation would break off what the first one closes.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise


def iterate(work: AsyncIterator[Value], cancel: Cancel) -> Iterator[Value]:
    """The items of an asynchronous iterator as they come; `cancel`, or closing this iterator, closes that one."""
    items: queue.SimpleQueue[Value] = queue.SimpleQueue()
    future = asyncio.run_coroutine_threadsafe(_forward(work, items), _loop())
    try:
        while not (future.done() and items.empty()):
            if cancel.is_set():
                raise Stopped()
            try:
                yield items.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
        future.result()
    finally:
        future.cancel()


async def _forward(work: AsyncIterator[Value], items: queue.SimpleQueue[Value]) -> None:
    try:
        async for item in work:
            items.put(item)
    finally:
        close = getattr(work, "aclose", None)
        if close:
            await close()


_only_one = threading.Lock()
"""`cache` would let several threads that call first make a loop each; what is bound to one waits in vain in another."""


def _loop() -> asyncio.AbstractEventLoop:
    with _only_one:
        return _running_loop()


@cache
def _running_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="network-calls", daemon=True).start()
    return loop
