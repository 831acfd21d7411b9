"""A pool of child processes; any thread may borrow one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Event, Lock
from typing import TypeVar
from weakref import finalize

from crag_core.base.concurrency.cancellation import GLANCE
from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.errors import DocumentMissing, DocumentRefused, Stopped
from crag_core.base.protocols import Cancel
from crag_core.retrieval.sandbox.process import ParseProcess, ProcessLost, Task
from crag_core.retrieval.sandbox.protocol import BadFrame, Fault, Limits, Reply

WORKERS = 2
# What a parser leaks goes with its process.
FILES_EACH = 200
IDLE_SECONDS = 60.0

Value = TypeVar("Value")

_log = logging.getLogger(__name__)


class ParsePool:
    """At most `workers` processes, which start with the first file and end when nothing comes for `idle` seconds.

    After `files_each` files a process makes way for a new one.
    """

    def __init__(self, limits: Limits, workers: int, files_each: int, idle: float) -> None:
        self._limits = limits
        self._files_each = files_each
        self._idle = idle
        self._turns = BoundedSemaphore(workers)
        self._lock = Lock()
        self._processes: list[ParseProcess] = []
        self._closed = Event()
        self._finalizer = finalize(self, _end_all, self._processes, self._lock, self._closed)
        # A parser that lets no other thread of its run would not notice that we are gone.
        finalize(self, at_end(self._finalizer))

    def ask(self, task: Task, unpack: Callable[[Reply, bytes], Value], cancel: Cancel | None = None) -> Value:
        """What `unpack` makes of the reply; it may raise `BadFrame`, `DocumentRefused` and `DocumentMissing`.

        Raises `ProcessLost`, `StartFailed` or `TookTooLong`, and `Stopped` once `cancel` is set.
        """
        cancel = cancel or Event()
        with self._turn(cancel):
            return self._ask(task, unpack, cancel)

    def close(self) -> None:
        """End all processes now; who is waiting for one, or comes later, gets `Stopped`."""
        self._finalizer()

    @contextmanager
    def _turn(self, cancel: Cancel) -> Iterator[None]:
        while not self._turns.acquire(timeout=GLANCE):
            if cancel.is_set():
                raise Stopped("Stopped by you.")
        try:
            yield
        finally:
            self._turns.release()

    def _ask(self, task: Task, unpack: Callable[[Reply, bytes], Value], cancel: Cancel, anew: bool = False) -> Value:
        process = self._take(anew)
        is_new = not process.files
        try:
            made = _ask_process(process, task, unpack, cancel)
        except ProcessLost as lost:
            process.end()
            if self._closed.is_set():
                raise Stopped("The application ends.") from lost
            _log.warning("%r: the parsing process %s", task.name, lost)
            # A library may quote the document: not for a log that people keep.
            _log.debug("The last words of that process: %r", process.last_words)
            if is_new:
                raise
            # A file before this one may have damaged it, or it ended just now since nothing came.
            return self._ask(task, unpack, cancel, anew=True)
        except (DocumentRefused, DocumentMissing):
            self._give_back(process)
            raise
        except BaseException:
            process.end()  # its answer, which is still to come, must not be taken for the next file's
            raise
        self._give_back(process)
        return made

    def _take(self, anew: bool) -> ParseProcess:
        with self._lock:
            if self._closed.is_set():
                raise Stopped("The application ends.")
            self._processes[:] = [process for process in self._processes if not process.is_over]
            # The first that is free, so that those which are not needed come to their end.
            free = [process for process in self._processes if not process.is_busy and not anew]
            if not free:
                free = [ParseProcess(self._limits, self._idle)]
                self._processes += free
            free[0].is_busy = True
            return free[0]

    def _give_back(self, process: ParseProcess) -> None:
        if process.files >= self._files_each:
            process.end()
        with self._lock:
            process.is_busy = False


def _ask_process(process: ParseProcess, task: Task, unpack: Callable[[Reply, bytes], Value], cancel: Cancel) -> Value:
    reply, body = process.ask(task, cancel)
    if reply.fault is Fault.MEMORY and process.files > 1:
        raise ProcessLost("ran out of memory")
    if reply.fault:
        process.end()
    try:
        return unpack(reply, body)
    except BadFrame as fault:
        raise ProcessLost(f"made no sense ({fault})") from fault


def _end_all(processes: list[ParseProcess], lock: Lock, closed: Event) -> None:
    closed.set()
    with lock:
        last = [*processes]
    for process in last:
        process.end()
