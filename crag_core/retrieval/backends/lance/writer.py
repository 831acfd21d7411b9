"""Writes to an index in a child process, so that a crash of its engine does not take the application down."""

from __future__ import annotations

import logging
import math
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from weakref import finalize

from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.errors import BadRecord, CragError, Stopped, StoreUnavailable, WriteLost, kind_named
from crag_core.base.serialization import from_plain
from crag_core.retrieval.backends import open_backend
from crag_core.retrieval.backends.backend import Backend
from crag_core.retrieval.backends.lance.backend import Answer, Write, carry_out
from crag_core.retrieval.sandbox.child_process import ChildProcess, ProcessLost, StartFailed, start_isolated
from crag_core.retrieval.sandbox.child_setup import Frame, listen, set_first_to_kill, take_pipes
from crag_core.retrieval.sandbox.messages import write_frame

IDLE_SECONDS = 60.0
# In an index of an early release a text of 10 MB may take the memory of so many, or of the 8192 of Lance's default.
_BATCH, _ROWS_AT_ONCE = "LANCE_DEFAULT_BATCH_SIZE", "256"
_log = logging.getLogger(__name__)
# The application is trusted; more than this does not fit into a frame.
_MOST_REQUEST = 2**32 - 1
_MOST_TOLD = 10_000  # characters


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
    return start_isolated("crag_core.retrieval.backends.lance.writer", "", environment)


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


def main(arguments: list[str]) -> None:
    try:
        _run()
    except BaseException:
        traceback.print_exc()
        # At once: clearing up closes the pipes first, and the application would not wait to see how we end.
        os._exit(1)


def _run() -> None:
    requests_from, answers_to = take_pipes()
    set_first_to_kill()
    requests: SimpleQueue[Frame] = SimpleQueue()
    Thread(target=listen, args=(requests_from, requests, _MOST_REQUEST, _MOST_REQUEST), daemon=True).start()
    write_frame(answers_to, Answer())
    opened: dict[tuple[str, str], Backend] = {}
    while True:
        header, body = requests.get()
        write_frame(answers_to, _answer(from_plain(Write, header), body, opened))


def _answer(write: Write, body: bytes, opened: dict[tuple[str, str], Backend]) -> Answer:
    try:
        place = write.setting, write.folder
        if place not in opened:
            opened[place] = open_backend(write.setting, Path(write.folder))
        carry_out(write, body, opened[place])
    except CragError as error:
        return Answer(type(error).__name__, error.message, error.hint)
    except Exception:
        return Answer(bug=traceback.format_exc()[-_MOST_TOLD:])
    return Answer()


if __name__ == "__main__":
    main(sys.argv[1:])
