"""One event loop in one thread for all calls of models and web searches, so that any call can be cancelled.

A synchronous HTTP read cannot be interrupted from another thread; an awaited one can, and closes its connection.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from functools import cache
from typing import Any, TypeVar

from crag_core.base.concurrency.cancellation import GLANCE
from crag_core.base.concurrency.cancellation import wait_for as wait_for_future
from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel

Value = TypeVar("Value")


def wait_for(work: Coroutine[Any, Any, Value], cancel: Cancel) -> Value:
    """Run `work` on the loop and return its value; raises `Stopped` once `cancel` is set."""
    return wait_for_future(asyncio.run_coroutine_threadsafe(work, _loop()), cancel)


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
                raise Stopped("Stopped by you.")
            try:
                yield items.get(timeout=GLANCE)
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


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="network-calls", daemon=True).start()
    return loop
