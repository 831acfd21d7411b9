"""The one list of background work, and how the process ends: ask it to stop, wait for seconds, exit.

Whoever starts a thread or a process that keeps something, or that would outlive us, tells `at_end`. Threads that do
neither (that wait for a server, that serve figures) need not: nothing is torn down under them. For a process that
returns from its main thread takes Python down while native threads (PyTorch's, ONNX Runtime's) still call
into it, and that aborts: one time in a hundred after the work, one in four while models load. So ours never returns
there: once all is closed it is ended at once, by the signal that asked for it or by `os._exit`.
"""

import atexit
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NoReturn

STOPPING_S = 5.0  # how long what is under way has to come to its end
KEEPING_S = 2.0  # and then to keep what there is of it; those that are last have as long for everything
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_LOG = logging.getLogger("crag")


@dataclass(frozen=True, eq=False)
class _Entry:
    stop: Callable[[], object]
    finish: Callable[[float], object]
    is_last: bool

    def close(self, until: float) -> None:
        for step in (self.stop, lambda: self.finish(max(until - time.monotonic(), 0.0))):
            try:
                step()
            except Exception:  # a bug of one must not keep the others from being closed
                _LOG.exception("something in the background could not be ended")


class Background:
    def __init__(self) -> None:
        self._entries: dict[_Entry, None] = {}
        self._lock = Lock()
        self._closing = Lock()
        self._is_ending = False
        self._is_used = False

    def at_end(
        self,
        stop: Callable[[], object],
        finish: Callable[[float], object] = lambda seconds: None,
        *,
        is_last: bool = False,
    ) -> Callable[[], None]:
        """When the process ends `stop` is called, then `finish` with how many seconds it may take: to wait, to keep.

        `is_last`: after all others, since they still use it. Returns what takes it off the list, for when it is over.
        What comes when the end has begun is stopped at once, and nobody waits for it.
        """
        entry = _Entry(stop, finish, is_last)
        with self._lock:
            is_late = self._is_ending
            if not is_late:
                self._entries[entry] = None
            if not self._is_used:  # a program of somebody else's uses this package, and returns from its main thread
                self._is_used = True
                atexit.register(self.close)
        if is_late:
            stop()
        return lambda: self._forget(entry)

    def is_ending(self) -> bool:
        """Then what is stopped is stopped for that, and not because somebody wants it undone."""
        return self._is_ending

    def close(self, seconds: float = STOPPING_S, more: float = KEEPING_S) -> None:
        """Stop everything and wait, all at the same time; who comes second waits for the first."""
        with self._closing:
            with self._lock:
                self._is_ending = True
            self._close(is_last=False, until=time.monotonic() + seconds, more=more)
            self._close(is_last=True, until=time.monotonic() + more, more=0.0)

    def _close(self, is_last: bool, until: float, more: float) -> None:
        with self._lock:
            entries = [entry for entry in self._entries if entry.is_last == is_last]
        threads = [Thread(target=entry.close, args=(until,), name="closing", daemon=True) for entry in entries]
        for thread, entry in zip(threads, entries, strict=True):
            try:
                thread.start()
            except RuntimeError:  # Python itself ends, and starts no thread any more
                entry.close(until)
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(until + more - time.monotonic(), 0.0))
        for entry in entries:
            self._forget(entry)

    def _forget(self, entry: _Entry) -> None:
        with self._lock:
            self._entries.pop(entry, None)


BACKGROUND = Background()
at_end = BACKGROUND.at_end
is_ending = BACKGROUND.is_ending


def end_on_signals() -> None:
    """From now on Ctrl-C and SIGTERM end the process once all is closed, as if by the signal itself; a second one ends
    it at once. From the main thread, which goes on meanwhile.
    """

    def end_by(number: int) -> None:
        if sys.stderr.isatty():
            print("\nStopping; what is under way is kept. Ctrl-C again ends it at once.", file=sys.stderr, flush=True)
        _close()
        _die(number)

    _watch_signals(end_by, lambda number: None)


def run(command: Callable[[], int]) -> NoReturn:
    """A command, from the main thread, and the end of the process with its exit code.

    Ctrl-C interrupts it, and is waited for as anything else is. Then the code is 130, also where foreign code, such as
    a module that was being loaded, makes another error of the interruption.
    """
    interrupted: list[int] = []

    def end_by(number: int) -> None:
        if number == signal.SIGINT:
            time.sleep(STOPPING_S)
        _close()
        if number == signal.SIGINT:
            os._exit(130)
        _die(number)

    def interrupt(number: int) -> None:
        if number == signal.SIGINT:
            interrupted.append(number)
            raise KeyboardInterrupt

    try:
        _watch_signals(end_by, interrupt)
        code = command()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        code = 1
        if not interrupted:
            traceback.print_exc()
    _handle_signals(signal.SIG_DFL)  # from here on Ctrl-C ends it at once
    with suppress(OSError, ValueError):  # a command says itself what cannot be written
        sys.stdout.flush()
    _close()
    os._exit(130 if interrupted and code else code)


def _watch_signals(end_by: Callable[[int], object], interrupt: Callable[[int], object]) -> None:
    """The first signal calls `interrupt` in the main thread and `end_by` in another; the next one kills."""
    received: SimpleQueue[int] = SimpleQueue()  # unlike any lock, usable where the main thread is interrupted

    def on_signal(number: int, frame: object) -> None:
        _handle_signals(signal.SIG_DFL)
        received.put(number)
        interrupt(number)

    Thread(target=lambda: end_by(received.get()), name="ending", daemon=True).start()
    _handle_signals(on_signal)


def _handle_signals(handler: Callable[[int, object], None] | signal.Handlers) -> None:
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:  # nohup
            signal.signal(each, handler)


def _close() -> None:
    def close() -> None:
        BACKGROUND.close()
        logging.shutdown()

    closing = Thread(target=close, name="closing", daemon=True)
    closing.start()
    closing.join(STOPPING_S + 2 * KEEPING_S)


def _die(number: int) -> NoReturn:
    """Re-raise the signal, so that the exit status shows it; the first process of a container cannot."""
    with suppress(OSError):
        os.kill(os.getpid(), number)
    os._exit(128 + number)
