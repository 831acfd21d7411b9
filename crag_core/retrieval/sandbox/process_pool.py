"""Child processes that answer one request after another: the application's side of them."""

from __future__ import annotations

import logging
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import IO, TYPE_CHECKING, Any, TypeVar
from weakref import finalize

from crag_core.base.concurrency.cancellation import POLL_SECONDS
from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel
from crag_core.retrieval.sandbox.child import BadFrame, WireEnded, read_frame, write_frame

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    _Request = tuple[DataclassInstance, bytes, int]

Value = TypeVar("Value")
Unpack = Callable[[Any, bytes], Value]
"""Makes the result of the header and the body of a reply; raises `BadFrame` for one that is not sound."""

_START_SECONDS = 60.0
_END_SECONDS = 5.0
_MOST_STDERR = 2_000  # bytes
# As Rust, C++ and Python write before they end; a refused thread has no memory for its stack.
_OUT_OF_MEMORY = re.compile(rb"memory allocation of|bad_alloc|MemoryError|out of memory|spawn worker thread", re.I)
_ROOT = Path(__file__).resolve().parents[3]
# Isolated (-I), it finds our package only on the path that is given to it.
_PROGRAM = (
    "import sys; sys.path[:0] = {sys.argv[1]} - {*sys.path}; from importlib import import_module; "
    "import_module(sys.argv[2]).main(sys.argv)"
)
_log = logging.getLogger(__name__)


class ProcessLost(Exception):
    """What happened to it, as the end of a sentence ("ended (SIGSEGV)")."""


class StartFailed(ProcessLost):
    """It was lost before it saw the request."""


class TookTooLong(ProcessLost):
    """It took more than its time."""


class OutOfMemory(ProcessLost):
    """It needed more than its memory."""


class Killed(ProcessLost):
    """Something else ended it: the system, when the memory of the machine is full."""


def start_isolated(module: str, argument: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Runs `main` of one of our modules, with pipes to all three streams; raises `OSError`.

    Not through multiprocessing, which imports the main script again; under Streamlit that is a page.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-B", "-X", "utf8", "-c", _PROGRAM, str(_ROOT), module, argument],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        # Ctrl-C in the terminal is for the application, which ends this one.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


class ChildProcess:
    """Answers one request at a time; ends after `idle` seconds without any, or with the application.

    `key` is what it was started with, `served` counts the requests that it was given. Raises `StartFailed`.
    """

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], idle: float, key: object = None) -> None:
        self.key = key
        self.served = 0
        self.is_busy = False
        self.is_over = False
        self._idle = idle
        self._is_ready = False
        self._stderr = b""
        self._reason = ""
        self._kind: type[ProcessLost] = ProcessLost
        self._lock = Lock()
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._replies: SimpleQueue[tuple[Any, bytes] | None] = SimpleQueue()
        try:
            self._process = start()
        except OSError as error:
            raise StartFailed(f"could not be started ({error.strerror})") from error
        self._server = Thread(target=self._serve, name="child", daemon=True)
        self._drainer = Thread(target=self._drain_stderr, name="child-stderr", daemon=True)
        self._drainer.start()
        self._server.start()

    def exchange(
        self, request: DataclassInstance, content: bytes, seconds: float, cancel: Cancel, most: int = 0
    ) -> tuple[Any, bytes]:
        """The reply, whose body has at most `most` bytes.

        Raises `ProcessLost` or `Stopped`; then it must be ended, as after any other error."""
        self.served += 1
        if not self._is_ready:
            self._await_start(cancel)
        with self._lock:
            if self.is_over:
                raise ProcessLost("had ended")
            self._requests.put((request, content, most))
        return self._await(seconds, cancel)

    def reserve(self) -> bool:
        """Keep it from ending for lack of requests; False if it has ended already."""
        with self._lock:
            self.is_busy = not self.is_over
            return self.is_busy

    def end(self) -> None:
        """Kill it at once, with all processes that it started."""
        with self._lock:
            self.is_over = True
        self._requests.put(None)
        self._kill()
        if current_thread() is not self._server:
            self._server.join(_END_SECONDS)

    @property
    def last_words(self) -> str:
        """The last line of its stderr, for the log."""
        lines = self._stderr.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]

    def _await_start(self, cancel: Cancel) -> None:
        try:
            self._await(_START_SECONDS, cancel)
        except ProcessLost as lost:
            raise StartFailed(f"{lost} before it had started") from lost
        self._is_ready = True

    def _await(self, seconds: float, cancel: Cancel) -> tuple[Any, bytes]:
        deadline = time.monotonic() + seconds
        while not cancel.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TookTooLong(f"took longer than {seconds:g} seconds")
            with suppress(Empty):
                reply = self._replies.get(timeout=min(left, POLL_SECONDS))
                if reply is None:
                    raise self._kind(self._reason)
                return reply
        raise Stopped("Stopped by you.")

    # --- in threads, so that neither a full pipe nor an empty one delays a stop ---

    def _serve(self) -> None:
        assert self._process.stdin and self._process.stdout
        try:
            self._replies.put(read_frame(self._process.stdout, 0))
            while self._pass_on(self._process.stdin, self._process.stdout):
                pass
        except (WireEnded, OSError):
            pass  # how it ended is known after `wait`
        except (BadFrame, MemoryError) as fault:
            self._reason = f"made no sense ({fault})"
        finally:
            self._clean_up()
            self._replies.put(None)

    def _pass_on(self, stdin: IO[bytes], stdout: IO[bytes]) -> bool:
        request = self._next()
        if request is None:
            return False
        record, content, most = request
        write_frame(stdin, record, content)
        self._replies.put(read_frame(stdout, most))
        return True

    def _next(self) -> _Request | None:
        try:
            return self._requests.get(timeout=self._idle)
        except Empty:
            with self._lock:
                self.is_over = self._requests.empty() and not self.is_busy
            return None if self.is_over else self._requests.get()

    def _drain_stderr(self) -> None:
        stream: Any = self._process.stderr
        with stream, suppress(OSError):
            while piece := stream.read1(4096):
                self._stderr = (self._stderr + piece)[-_MOST_STDERR:]

    def _clean_up(self) -> None:
        with self._lock:
            self.is_over = True
        self._kill()
        with self._lock, suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self._drainer.join(1)
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with suppress(OSError):  # what was not sent cannot be any more
                    stream.close()
        if not self._reason:
            self._kind, self._reason = _describe_end(self._process.returncode, self._stderr)

    def _kill(self) -> None:
        """Its whole group, unless it was waited for: afterwards its id may be another process's."""
        with self._lock:
            if self._process.returncode is None:
                with suppress(OSError):
                    if hasattr(os, "killpg"):
                        os.killpg(self._process.pid, signal.SIGKILL)
                    else:
                        self._process.kill()


class ProcessPool:
    """Processes that start when they are needed, and end after `idle` seconds without a request, or when we do.

    After `most` requests each a process is replaced. `purpose` completes "the process that" for the log. `is_last`: at
    the end of the program it is closed last, since what is under way still asks. Thread-safe.
    """

    def __init__(self, purpose: str, idle: float, most: float = math.inf, is_last: bool = False) -> None:
        self._purpose = purpose
        self._idle = idle
        self._most = most
        self._lock = Lock()
        self._processes: list[ChildProcess] = []
        self._closed = Event()
        # A process that blocks all its threads would not notice that the application has ended.
        self._finalizer = finalize(self, _end_all, self._processes, self._lock, self._closed)
        finalize(self, at_end(self._finalizer, is_last=is_last))

    def close(self) -> None:
        """End all processes now; callers that wait, and later ones, get `Stopped`."""
        self._finalizer()

    def _take(
        self, start: Callable[[], subprocess.Popen[bytes]], key: object = None, is_new: bool = False
    ) -> ChildProcess:
        """One that was started with this key, for the caller alone, a new one if `is_new`; raises `StartFailed`."""
        with self._lock:
            if self._closed.is_set():
                raise Stopped("The application ends.")
            self._processes[:] = [process for process in self._processes if not process.is_over]
            # The first free one, so that processes which are not needed become idle and end.
            for process in self._processes:
                if not is_new and not process.is_busy and process.key == key and process.reserve():
                    return process
            process = ChildProcess(start, self._idle, key)
            process.reserve()
            self._processes.append(process)
            return process

    def _exchange(
        self,
        process: ChildProcess,
        request: DataclassInstance,
        content: bytes,
        unpack: Unpack[Value],
        name: str,
        *,
        seconds: float = math.inf,
        cancel: Cancel | None = None,
        most: int = 0,
    ) -> Value:
        """What `unpack` makes of the reply, with at most `most` bytes in its body; then the process is free again.

        Raises `ProcessLost`, and `Stopped` once `cancel` is set or the pool is closed; then the process is ended.
        """
        try:
            reply = process.exchange(request, content, seconds, cancel or Event(), most)
            try:
                result = unpack(*reply)
            except BadFrame as fault:
                raise ProcessLost(f"made no sense ({fault})") from fault
        except ProcessLost as lost:
            process.end()
            if self._closed.is_set():
                raise Stopped("The application ends.") from lost
            _log.warning("%r: the process that %s %s", name, self._purpose, lost)
            # It may quote a document: not for a log that people keep.
            _log.debug("The last line of its stderr: %r", process.last_words)
            raise
        except BaseException:
            process.end()  # its answer, which is still to come, must not be taken for the next one's
            raise
        if process.served >= self._most:
            process.end()
        with self._lock:
            process.is_busy = False
        return result


def _end_all(processes: list[ChildProcess], lock: Lock, closed: Event) -> None:
    closed.set()
    with lock:
        last = [*processes]
    for process in last:
        process.end()


def _describe_end(code: int | None, stderr: bytes) -> tuple[type[ProcessLost], str]:
    try:
        name = signal.Signals(-(code or 0)).name
    except ValueError:
        name = f"exit status {code}"
    if _OUT_OF_MEMORY.search(stderr):
        return OutOfMemory, f"ended for want of memory ({name})"
    if name == "SIGKILL":
        return Killed, "ended (killed, as happens when the memory of the machine is full)"
    return ProcessLost, f"ended ({name})"
