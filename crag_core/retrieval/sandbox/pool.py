"""A pool of child processes that parse documents and draw pages; thread-safe."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import BoundedSemaphore, Event, Lock
from typing import TypeVar
from weakref import finalize

from crag_core.base.concurrency.cancellation import GLANCE
from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.errors import DocumentRefused, Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.serialization import to_plain
from crag_core.retrieval.sandbox.child_process import (
    ChildProcess,
    OutOfMemory,
    ProcessLost,
    TookTooLong,
    start_isolated,
)
from crag_core.retrieval.sandbox.messages import BadFrame, Limits, Reply, Request, check_reply

# No settings and no keys: a parser cannot reveal what it does not have.
KEPT_VARIABLES = ("PATH", "LANG", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_USUAL_LIMITS = Limits()
_MOST_SHOWN = 2_000  # characters

Value = TypeVar("Value")
Unpack = Callable[[Reply, bytes], Value]
"""Makes the result of a reply; raises `BadFrame` for one that is not sound."""

_log = logging.getLogger(__name__)


class ProcessPool:
    """At most `workers` processes, which start with the first file and end after `idle` seconds without one.

    After `files_each` files a process is replaced, so that memory leaks of parsers do not add up.
    """

    def __init__(
        self, limits: Limits | None = None, *, workers: int = 2, files_each: int = 200, idle: float = 60.0
    ) -> None:
        self._limits = limits or Limits()
        self._files_each = files_each
        self._idle = idle
        self._turns = BoundedSemaphore(workers)
        self._lock = Lock()
        self._processes: list[_ParsingProcess] = []
        self._closed = Event()
        self._finalizer = finalize(self, _end_all, self._processes, self._lock, self._closed)
        # A parser that blocks all its threads would not notice that the application has ended.
        finalize(self, at_end(self._finalizer))

    def ask(self, request: Request, content: bytes, unpack: Unpack[Value], cancel: Cancel | None = None) -> Value:
        """What `unpack` makes of the reply. Raises `DocumentRefused` as the reply says, `ProcessLost`
        and its kinds, and `Stopped` once `cancel` is set or the pool is closed.
        """
        cancel = cancel or Event()
        with self._turn(cancel):
            return self._ask(request, content, unpack, cancel)

    def close(self) -> None:
        """End all processes now; callers that wait, and later ones, get `Stopped`."""
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

    def _ask(
        self, request: Request, content: bytes, unpack: Unpack[Value], cancel: Cancel, is_retry: bool = False
    ) -> Value:
        process = self._take(fresh=is_retry)
        try:
            result = process.ask(request, content, unpack, cancel)
        except DocumentRefused:
            self._give_back(process)
            raise
        except ProcessLost as lost:
            process.end()
            if self._closed.is_set():
                raise Stopped("The application ends.") from lost
            _log.warning("%r: the parsing process %s", request.name, lost)
            # A library may quote the document: not for a log that people keep.
            _log.debug("The last line of its stderr: %r", process.last_words)
            # An earlier file may have damaged it, or it ended just now because it was idle.
            if process.files > 1 and not isinstance(lost, TookTooLong):
                return self._ask(request, content, unpack, cancel, is_retry=True)
            raise
        except BaseException:
            process.end()  # its pending answer must not be taken for the next file's
            raise
        self._give_back(process)
        return result

    def _take(self, fresh: bool) -> _ParsingProcess:
        with self._lock:
            if self._closed.is_set():
                raise Stopped("The application ends.")
            self._processes[:] = [process for process in self._processes if not process.is_over]
            # The first free one, so that processes which are not needed become idle and end.
            for process in self._processes:
                if not fresh and not process.is_busy and process.reserve():
                    return process
            process = _ParsingProcess(self._limits, self._idle)
            process.reserve()
            self._processes.append(process)
            return process

    def _give_back(self, process: _ParsingProcess) -> None:
        if process.files >= self._files_each:
            process.end()
        with self._lock:
            process.is_busy = False


class _ParsingProcess(ChildProcess):
    """`files` counts the files that it was given."""

    def __init__(self, limits: Limits, idle: float) -> None:
        self.files = 0
        self._limits = limits
        module, argument = "crag_core.retrieval.sandbox.worker", json.dumps(to_plain(limits))
        super().__init__(lambda: start_isolated(module, argument, _environment()), idle)

    def ask(self, request: Request, content: bytes, unpack: Unpack[Value], cancel: Cancel) -> Value:
        """As `ProcessPool.ask`; after any error but `DocumentRefused` it must be ended."""
        self.files += 1
        request = replace(request, id=self.files)
        header, body = self.exchange(request, content, self._limits.seconds, cancel, request.reply_bytes(self._limits))
        try:
            reply = check_reply(header, request.id)
            if reply.is_out_of_memory:
                raise OutOfMemory(f"needed more than {self._limits.memory // 2**20:,} MB of memory")
            if reply.message:
                raise DocumentRefused(reply.message[:_MOST_SHOWN], hint=reply.hint[:_MOST_SHOWN])
            return unpack(reply, body)
        except BadFrame as fault:
            raise ProcessLost(f"made no sense ({fault})") from fault


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in KEPT_VARIABLES or name.startswith("LC_")}
    # NumPy, which some parser brings along, would start a thread for each core.
    return {**kept, "OPENBLAS_NUM_THREADS": "1"}


def _end_all(processes: list[_ParsingProcess], lock: Lock, closed: Event) -> None:
    closed.set()
    with lock:
        last = [*processes]
    for process in last:
        process.end()
