"""A child process that answers one request after another: the application's side of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from crag_core.base.concurrency.cancellation import POLL_SECONDS
from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.serialization import to_plain
from crag_core.retrieval.sandbox.messages import (
    BadFrame,
    Limits,
    Reply,
    Request,
    WireEnded,
    check_reply,
    read_frame,
    write_frame,
)

Value = TypeVar("Value")

# No settings and no keys: a parser cannot reveal what it does not have.
KEPT_VARIABLES = ("PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_START_SECONDS = 60.0
_END_SECONDS = 5.0
_MOST_STDERR = 2_000  # bytes
# As Rust, C++ and Python write before they end; a refused thread has no memory for its stack.
_OUT_OF_MEMORY = re.compile(rb"memory allocation of|bad_alloc|MemoryError|out of memory|spawn worker thread", re.I)
_ROOT = Path(__file__).resolve().parents[3]
# Isolated (-I), it finds our package only on the path that is given to it. Not through multiprocessing, which imports
# the main script again; under Streamlit that is a page.
_PROGRAM = (
    "import sys; sys.path[:0] = {sys.argv[1]} - {*sys.path}; from crag_core.retrieval.sandbox.worker import main; "
    "main(sys.argv)"
)


_SPLIT = "Split the document into smaller files, or open it in its own program, save it again and add that."
_START_AGAIN = "Try it again; if that does not help, close other programs or start the application again."


class ProcessLost(Exception):
    """What happened to it, as the end of a sentence ("ended (SIGSEGV)"), and what to do; "": the file may be damaged.

    `is_final`: the file would do the same to another process.
    """

    def __init__(self, how: str, hint: str = "", is_final: bool = False) -> None:
        super().__init__(how)
        self.hint = hint
        self.is_final = is_final


class Process:
    """For one caller at a time; ends when it is told to, when it had nothing to do for a while, or with us.

    `served` counts the requests that it was given. Raises `ProcessLost`.
    """

    def __init__(self, limits: Limits) -> None:
        self.served = 0
        self._limits = limits
        self._is_over = False
        self._stderr = b""
        self._lock = Lock()
        self._replies: SimpleQueue[tuple[Any, bytes] | ProcessLost] = SimpleQueue()
        kept = {name: value for name, value in os.environ.items() if name in KEPT_VARIABLES or name.startswith("LC_")}
        arguments = [str(_ROOT), json.dumps(to_plain(limits))]
        try:
            self.child = subprocess.Popen(
                [sys.executable, "-I", "-B", "-X", "utf8", "-c", _PROGRAM, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # NumPy, which some parser brings along, would start a thread for each core.
                env={**kept, "OPENBLAS_NUM_THREADS": "1"},
                # Ctrl-C in the terminal is for the application, which ends this one.
                start_new_session=True,
            )
        except OSError as error:
            raise ProcessLost(f"could not be started ({error.strerror})", _START_AGAIN) from error
        self._drainer = Thread(target=self._drain_stderr, name="child-stderr", daemon=True)
        self._drainer.start()
        self._begin(None, b"", 0)

    def exchange(
        self, request: Request, content: bytes, unpack: Callable[[Reply, bytes], Value], cancel: Cancel
    ) -> tuple[Reply, Value | None]:
        """The reply and what `unpack` makes of it, None where it is a refusal.

        Raises `ProcessLost` or `Stopped`; then it must be ended, since a late answer would be taken for the next one's.
        """
        if not self.served:
            try:
                self._await(_START_SECONDS, cancel)
            except ProcessLost as lost:
                raise ProcessLost(f"{lost} before it had started", _START_AGAIN) from lost
        self.served += 1
        request = replace(request, id=self.served)
        self._begin(request, content, request.reply_bytes(self._limits))
        header, body = self._await(self._limits.seconds, cancel)
        try:
            reply = check_reply(header, request.id)
            if reply.is_out_of_memory:
                raise self._out_of_memory()
            return reply, None if reply.message else unpack(reply, body)
        except BadFrame as fault:
            raise ProcessLost(f"made no sense ({fault})") from fault

    def end(self) -> None:
        """Kill it at once, with all processes that it started."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            # Before it is waited for: afterwards its id may be another process's.
            with suppress(OSError):
                os.killpg(self.child.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.child.wait(_END_SECONDS)
        self._drainer.join(1)

    @property
    def last_words(self) -> str:
        """The last line of its stderr, for the log."""
        lines = self._stderr.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]

    def _await(self, seconds: float, cancel: Cancel) -> tuple[Any, bytes]:
        deadline = time.monotonic() + seconds
        while not cancel.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                raise ProcessLost(f"took longer than {seconds:g} seconds", _SPLIT, is_final=True)
            with suppress(Empty):
                reply = self._replies.get(timeout=min(left, POLL_SECONDS))
                if isinstance(reply, ProcessLost):
                    raise reply
                return reply
        raise Stopped()

    def _begin(self, request: Request | None, content: bytes, most: int) -> None:
        """In a thread, so that neither a full pipe nor an empty one delays a stop."""
        Thread(target=self._pass_on, args=(request, content, most), name="child", daemon=True).start()

    def _pass_on(self, request: Request | None, content: bytes, most: int) -> None:
        assert self.child.stdin and self.child.stdout
        try:
            if request is not None:
                write_frame(self.child.stdin, request, content)
            self._replies.put(read_frame(self.child.stdout, most))
            return
        except (BadFrame, MemoryError) as fault:
            reason: ProcessLost | None = ProcessLost(f"made no sense ({fault})")
        except (WireEnded, OSError):
            reason = None
        self.end()
        for stream in (self.child.stdin, self.child.stdout):
            with suppress(OSError):  # what was not sent cannot be any more
                stream.close()
        self._replies.put(reason or self._describe_end())

    def _drain_stderr(self) -> None:
        stream: Any = self.child.stderr
        with stream, suppress(OSError):
            while piece := stream.read1(4096):
                self._stderr = (self._stderr + piece)[-_MOST_STDERR:]

    def _describe_end(self) -> ProcessLost:
        code = self.child.returncode
        if _OUT_OF_MEMORY.search(self._stderr):
            return self._out_of_memory()
        try:
            name = signal.Signals(-(code or 0)).name
        except ValueError:
            name = f"exit status {code}"
        if name == "SIGKILL":
            return ProcessLost("ended (killed, as happens when the memory of the machine is full)", _SPLIT)
        return ProcessLost(f"ended ({name})")

    def _out_of_memory(self) -> ProcessLost:
        return ProcessLost(f"needs more than {self._limits.memory // 2**20:,} MB of memory", _SPLIT)
