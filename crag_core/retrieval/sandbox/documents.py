"""Reads, chunks and draws documents in child processes, within limits of time, memory and size."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import BoundedSemaphore, Event, Lock
from typing import TypeVar
from weakref import finalize

from crag_core.base.concurrency.cancellation import POLL_SECONDS
from crag_core.base.concurrency.shutdown import at_end
from crag_core.base.errors import DocumentRefused, Stopped
from crag_core.base.protocols import Cancel
from crag_core.retrieval.chunking.split import Chunks, cut_document
from crag_core.retrieval.chunking.text_splitter import Cut
from crag_core.retrieval.page_view.page_image import PagePicture, Span
from crag_core.retrieval.readers import Page, check_size
from crag_core.retrieval.sandbox.messages import (
    Drawing,
    Limits,
    Reply,
    Request,
    unpack_chunks,
    unpack_pages,
    unpack_picture,
)
from crag_core.retrieval.sandbox.process import Process, ProcessLost

Value = TypeVar("Value")

DRAWING = Limits(seconds=15.0)
"""Shorter, since somebody waits for the page."""
PAGE = Limits(seconds=5.0, memory=1024**3)
"""Of the web: at most two million bytes, and a run waits for it."""
_MOST_SHOWN = 2_000  # characters
_SAVE_AGAIN = "The file may be damaged: open it in its own program, save it again and add it."
_PRINT_IT = "The file may be damaged: open it in a PDF program, print it to a new PDF, and add that one."
_log = logging.getLogger(__name__)


class DocumentProcesses:
    """Reads, chunks and draws documents in child processes; thread-safe.

    Limits hold for one file or page; memory is limited where the system supports it. The application has one instance
    for reading and one for drawing, so that showing a page never waits for indexing. At most `workers` processes start
    when they are needed; each is replaced after `files_each`, so that memory leaks of parsers do not add up. All
    methods raise `Stopped` once `cancel` is set or the application ends.
    """

    def __init__(self, limits: Limits | None = None, *, workers: int = 2, files_each: int = 200) -> None:
        self._limits = limits or Limits()
        self._files_each = files_each
        self._turns = BoundedSemaphore(workers)
        self._lock = Lock()
        self._processes: set[Process] = set()
        self._free: list[Process] = []
        self._closed = Event()
        # A process that blocks all its threads would not notice that the application has ended.
        self._finalizer = finalize(self, _end_all, self._processes, self._lock, self._closed)
        finalize(self, at_end(self._finalizer))

    def close(self) -> None:
        self._finalizer()

    def read(self, content: bytes, name: str, cancel: Cancel | None = None) -> tuple[Page, ...]:
        """As `readers.read_document`; also refuses what exceeds a limit or crashes its parser."""
        check_size(len(content), name)
        unpack = partial(unpack_pages, characters=self._limits.characters)
        return self._ask(Request(name), content, unpack, cancel or Event())

    def cut(self, content: bytes, name: str, cut: Cut, cancel: Cancel) -> Chunks:
        """The chunks of a document, of which the number is limited too.

        They are cut in this process where the embedding model has no tokenizer file that a child could load.
        """
        if not cut.tokenizer:
            return cut_document(self.read(content, name, cancel), name, cut, cancel)
        check_size(len(content), name)
        unpack = partial(unpack_chunks, cut=cut, limits=self._limits)
        return self._ask(Request(name, cut=replace(cut, tokenize=None)), content, unpack, cancel)

    def draw(self, original: bytes, page: int, text: str, spans: Sequence[Span], width: int) -> PagePicture:
        """As `page_picture`; also refuses what exceeds a limit or crashes the process."""
        check_size(len(original), "The document")
        drawing = Drawing(page, text, tuple(spans), width)
        request = Request(f"page {page} of a PDF of {len(original):,} bytes", drawing)
        return self._ask(request, original, partial(unpack_picture, asked=drawing), Event())

    def _ask(self, request: Request, content: bytes, unpack: Callable[[Reply, bytes], Value], cancel: Cancel) -> Value:
        """Raises `DocumentRefused` and `Stopped`."""
        while not self._turns.acquire(timeout=POLL_SECONDS):
            if cancel.is_set():
                raise Stopped()
        try:
            process = self._take()
            try:
                return self._exchange(process, request, content, unpack, cancel)
            except ProcessLost as lost:
                if process.served <= 1 or lost.is_final:
                    raise
            # An earlier file may have damaged it, or it ended just now for lack of requests.
            return self._exchange(self._take(is_new=True), request, content, unpack, cancel)
        except ProcessLost as lost:
            _log.warning("%r: the process that reads and draws documents %s", request.name, lost)
            what, hint = f"{request.name}: cannot be read, since the process that parses it", _SAVE_AGAIN
            if request.drawing:
                what, hint = f"Page {request.drawing.page} cannot be drawn, since the process that draws it", _PRINT_IT
            raise DocumentRefused(f"{what} {lost}.", hint=lost.hint or hint) from lost
        finally:
            self._turns.release()

    def _take(self, is_new: bool = False) -> Process:
        with self._lock:
            if self._closed.is_set():
                raise Stopped("The application ends.")
            if self._free and not is_new:
                return self._free.pop()
            process = Process(self._limits)
            self._processes.add(process)
            return process

    def _exchange(
        self,
        process: Process,
        request: Request,
        content: bytes,
        unpack: Callable[[Reply, bytes], Value],
        cancel: Cancel,
    ) -> Value:
        """What `unpack` makes of the reply; then the process is free again, and ended after any other error."""
        try:
            reply, result = process.exchange(request, content, unpack, cancel)
        except BaseException as error:
            self._end(process)
            if isinstance(error, ProcessLost):
                if self._closed.is_set():
                    raise Stopped("The application ends.") from error
                # It may quote a document: not for a log that people keep.
                _log.debug("%r: it %s; the last line of its stderr: %r", request.name, error, process.last_words)
            raise
        if process.served >= self._files_each:
            self._end(process)
        else:
            self._free.append(process)
        if result is None:
            raise DocumentRefused(reply.message[:_MOST_SHOWN], hint=reply.hint[:_MOST_SHOWN])
        return result

    def _end(self, process: Process) -> None:
        process.end()
        with self._lock:
            self._processes.discard(process)


def _end_all(processes: set[Process], lock: Lock, closed: Event) -> None:
    closed.set()
    with lock:
        last = [*processes]
    for process in last:
        process.end()
