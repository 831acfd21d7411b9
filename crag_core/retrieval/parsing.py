"""Documents are parsed in processes of their own: a hostile file can neither crash, hang nor fill the application."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Event, Lock
from weakref import finalize

from crag_core.errors import DocumentRefused, Stopped
from crag_core.protocols import Cancel
from crag_core.retrieval.parse_process import ParseProcess, ProcessLost, StartFailed, TookTooLong
from crag_core.retrieval.parse_wire import BadFrame, Fault, Limits, unpack_pages
from crag_core.retrieval.readers import MAX_BYTES, Page, load_content
from crag_core.waiting import GLANCE

_SECONDS = 120.0
_MEMORY = 2 * 1024**3
# No text file may be larger than this, so none has more characters.
_CHARACTERS = MAX_BYTES
_WORKERS = 2
# What a parser leaks goes with its process.
_FILES_EACH = 200
_IDLE_SECONDS = 60.0
_MOST_TOLD = 2_000  # characters
_SPLIT = "Split the document into smaller files, or open it in its own program, save it again and add that."
_SAVE_AGAIN = "The file may be damaged: open it in its own program, save it again and add it."

_log = logging.getLogger(__name__)


class Parser:
    """Reads documents in at most `workers` processes, which start with the first file and end when nothing comes.

    Any thread may use it. Limits hold for one file: `seconds`, bytes of `memory` (where the system can limit it), and
    `characters` of text. `readers` is a module with `READERS` beside our own.
    """

    def __init__(
        self,
        *,
        seconds: float = _SECONDS,
        memory: int = _MEMORY,
        characters: int = _CHARACTERS,
        workers: int = _WORKERS,
        files_each: int = _FILES_EACH,
        idle: float = _IDLE_SECONDS,
        readers: str = "",
    ) -> None:
        self._limits = Limits(seconds, memory, characters, readers)
        self._files_each = files_each
        self._idle = idle
        self._turns = BoundedSemaphore(workers)
        self._lock = Lock()
        self._processes: list[ParseProcess] = []
        self._closed = Event()
        # When the interpreter ends too.
        self._finalizer = finalize(self, _end_all, self._processes, self._lock, self._closed)

    def read(self, content: bytes, name: str, cancel: Cancel | None = None) -> tuple[Page, ...]:
        """As `readers.read_document`: pages that hold text, at least one, or `DocumentRefused`.

        It also refuses what goes over a limit and what breaks its parser. Raises `Stopped` once `cancel` is set.
        """
        if len(content) > MAX_BYTES:
            load_content(content, name)  # refuses it
        cancel = cancel or Event()
        with self._turn(cancel):
            return self._read(content, name, cancel)

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

    def _read(self, content: bytes, name: str, cancel: Cancel, anew: bool = False) -> tuple[Page, ...]:
        process = self._take(name, anew)
        is_new = not process.files
        try:
            pages = self._ask(process, content, name, cancel)
        except ProcessLost as lost:
            process.end()
            if self._closed.is_set():
                raise Stopped("The application ends.") from lost
            _log.warning("%r: the parsing process %s; its last words: %r", name, lost, process.last_words)
            if is_new:
                raise _refuse_lost(name, lost) from lost
            # A file before this one may have damaged it, or it ended just now since nothing came.
            return self._read(content, name, cancel, anew=True)
        except DocumentRefused:
            self._give_back(process)
            raise
        except BaseException:
            process.end()  # its answer, which is still to come, must not be taken for the next file's
            raise
        self._give_back(process)
        return pages

    def _ask(self, process: ParseProcess, content: bytes, name: str, cancel: Cancel) -> tuple[Page, ...]:
        try:
            reply, body = process.ask(name, content, cancel)
        except TookTooLong:
            process.end()
            raise DocumentRefused(
                f"{name}: reading it takes longer than {self._limits.seconds:g} seconds.", hint=_SPLIT
            ) from None
        if reply.fault is Fault.MEMORY and process.files > 1:
            raise ProcessLost("ran out of memory")
        if reply.fault:
            process.end()
            raise _refuse_size(name, reply.fault, self._limits)
        if reply.message:
            raise DocumentRefused(reply.message[:_MOST_TOLD], hint=reply.hint[:_MOST_TOLD])
        try:
            return unpack_pages(reply, body, self._limits.characters)
        except BadFrame as fault:
            raise ProcessLost(f"made no sense ({fault})") from fault

    def _take(self, name: str, anew: bool) -> ParseProcess:
        with self._lock:
            if self._closed.is_set():
                raise Stopped("The application ends.")
            self._processes[:] = [process for process in self._processes if not process.is_over]
            # The first that is free, so that those which are not needed come to their end.
            free = [process for process in self._processes if not process.is_busy and not anew]
            if not free:
                try:
                    free = [ParseProcess(self._limits, self._idle)]
                except StartFailed as failed:
                    raise _refuse_lost(name, failed) from failed
                self._processes += free
            free[0].is_busy = True
            return free[0]

    def _give_back(self, process: ParseProcess) -> None:
        if process.files >= self._files_each:
            process.end()
        with self._lock:
            process.is_busy = False


def _end_all(processes: list[ParseProcess], lock: Lock, closed: Event) -> None:
    closed.set()
    with lock:
        last = [*processes]
    for process in last:
        process.end()


def _refuse_lost(name: str, lost: ProcessLost) -> DocumentRefused:
    if isinstance(lost, StartFailed):
        return DocumentRefused(
            f"{name}: not read, since the process that parses documents {lost} before it saw the file.",
            hint="Add it again; if that does not help, close other programs or start the application again.",
        )
    return DocumentRefused(f"{name}: cannot be read, since the process that parsed it {lost}.", hint=_SAVE_AGAIN)


def _refuse_size(name: str, fault: Fault, limits: Limits) -> DocumentRefused:
    if fault is Fault.MEMORY:
        return DocumentRefused(
            f"{name}: reading it takes more than {limits.memory // 2**20:,} MB of memory.", hint=_SPLIT
        )
    return DocumentRefused(f"{name}: holds more than {limits.characters:,} characters of text.", hint=_SPLIT)
