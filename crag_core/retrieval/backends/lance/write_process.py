"""Writes to an index in a child process, so that a crash of its engine does not take the application down."""

from __future__ import annotations

import logging
import math
import os
import subprocess
from collections.abc import Mapping
from threading import Event, Lock
from weakref import finalize

from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.errors import BadRecord, Stopped, StoreUnavailable, WriteLost, kind_named
from crag_core.base.serialization import from_plain
from crag_core.retrieval.backends.lance.write_protocol import Answer, Write
from crag_core.retrieval.sandbox.child_process import ChildProcess, ProcessLost, StartFailed, start_isolated

IDLE_SECONDS = 60.0
# In an index of an early release a text of 10 MB may take the memory of so many, or of the 8192 of Lance's default.
_BATCH, _ROWS_AT_ONCE = "LANCE_DEFAULT_BATCH_SIZE", "256"
_log = logging.getLogger(__name__)


class Writer:
    """A process that starts with the first write and ends after `idle` seconds without any, or when we do.

    Any thread may write, to any index; a second process starts only where two write at the same time.
    """

    def __init__(self, idle: float = IDLE_SECONDS) -> None:
        self._idle = idle
        self._lock = Lock()
        self._processes: list[_WriteProcess] = []
        self._closed = Event()
        # When the interpreter ends too; at the end of the program last, since what is under way still writes.
        self._finalizer = finalize(self, _end_all, self._processes, self._lock, self._closed)
        finalize(self, at_end(self._finalizer, is_last=True))

    def write(self, write: Write, body: bytes) -> None:
        """Raises what the call raises; `WriteLost` where the process died, after which it is done or not, all or
        nothing; `Stopped` once this was closed."""
        process = self._take()
        try:
            answer = process.ask(write, body)
        except ProcessLost as lost:
            process.end()
            raise self._explain(write, process, lost) from lost
        except BaseException:
            process.end()  # its answer, which is still to come, must not be taken for the next one's
            raise
        with self._lock:
            process.is_busy = False
        if answer.bug:
            raise RuntimeError(f"{write.call}: {answer.bug}")
        if answer.kind:
            raise kind_named(answer.kind)(answer.message, hint=answer.hint)

    def close(self) -> None:
        """End all processes now; who waits for one, or comes later, gets `Stopped`. What they wrote is whole."""
        self._finalizer()

    def _take(self) -> _WriteProcess:
        with self._lock:
            if self._closed.is_set():
                raise Stopped("The application ends.")
            self._processes[:] = [process for process in self._processes if not process.is_over]
            keys = _keys()
            for process in self._processes:
                if not process.is_busy and process.keys == keys and process.reserve():
                    return process
            try:
                process = _WriteProcess(keys, self._idle)
            except StartFailed as failed:
                raise _not_started(failed) from failed
            process.is_busy = True
            self._processes.append(process)
            return process

    def _explain(self, write: Write, process: _WriteProcess, lost: ProcessLost) -> StoreUnavailable | Stopped:
        if self._closed.is_set():
            return Stopped("The application ends.")
        if isinstance(lost, StartFailed):
            return _not_started(lost)
        _log.warning("%s: the process that writes to the index %s", write.call, lost)
        # It may quote a document: not for a log that people keep.
        _log.debug("The last words of that process: %r", process.last_words)
        message = f"The process that writes to the index {lost}."
        return WriteLost(message, hint="Try again; what was indexed before is safe.")


class _WriteProcess(ChildProcess):
    def __init__(self, keys: Mapping[str, str], idle: float) -> None:
        self.keys = keys
        super().__init__(_start, idle)

    def ask(self, write: Write, body: bytes) -> Answer:
        header, _ = self.exchange(write, body, math.inf, Event())
        try:
            return from_plain(Answer, header)
        except BadRecord as error:
            raise ProcessLost(f"made no sense ({error})") from error


def _start() -> subprocess.Popen[bytes]:
    environment = {_BATCH: _ROWS_AT_ONCE, **os.environ}
    return start_isolated("crag_core.retrieval.backends.lance.write_worker", "", environment)


def _keys() -> dict[str, str]:
    """Address and keys of an object store: a process uses those that it was started with."""
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


def _not_started(failed: StartFailed) -> StoreUnavailable:
    return StoreUnavailable(
        f"Nothing was written to the index, since the process that writes to it {failed}.",
        hint="Try again; if that does not help, close other programs or start the application again.",
    )


def _end_all(processes: list[_WriteProcess], lock: Lock, closed: Event) -> None:
    closed.set()
    with lock:
        last = [*processes]
    for process in last:
        process.end()
