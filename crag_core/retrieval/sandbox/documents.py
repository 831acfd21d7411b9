"""Parses, chunks and draws documents in child processes, within limits of time, memory and size."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import BoundedSemaphore, Event
from typing import Any

from crag_core.base.concurrency.cancellation import POLL_SECONDS
from crag_core.base.errors import DocumentRefused, Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.serialization import to_plain
from crag_core.retrieval.chunking.split import Chunks, Cut, cut_document
from crag_core.retrieval.page_view.page_image import PagePicture, Span
from crag_core.retrieval.readers import Page, check_size
from crag_core.retrieval.sandbox.messages import (
    Drawing,
    Limits,
    Reply,
    Request,
    check_reply,
    unpack_chunks,
    unpack_pages,
    unpack_picture,
)
from crag_core.retrieval.sandbox.process_pool import (
    Killed,
    OutOfMemory,
    ProcessLost,
    ProcessPool,
    StartFailed,
    TookTooLong,
    Value,
    start_isolated,
)

# No settings and no keys: a parser cannot reveal what it does not have.
KEPT_VARIABLES = ("PATH", "LANG", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
DRAWING = Limits(seconds=15.0)
"""Shorter, since somebody waits for the page."""
PAGE = Limits(seconds=5.0, memory=1024**3)
"""Of the web: at most two million bytes, and a run waits for it."""
_MOST_SHOWN = 2_000  # characters
_SPLIT = "Split the document into smaller files, or open it in its own program, save it again and add that."
_SAVE_AGAIN = "The file may be damaged: open it in its own program, save it again and add it."
_PRINT_IT = "The file may be damaged: open it in a PDF program, print it to a new PDF, and add that one."
_START_AGAIN = "Try it again; if that does not help, close other programs or start the application again."


class DocumentProcesses(ProcessPool):
    """Reads, chunks and draws documents in child processes; thread-safe.

    Limits hold for one file or page; memory is limited where the system supports it. The application has one instance
    for reading and one for drawing, so that showing a page never waits for indexing. At most `workers` processes start
    with the first file; each is replaced after `files_each`, so that memory leaks of parsers do not add up.
    """

    def __init__(
        self, limits: Limits | None = None, *, workers: int = 2, files_each: int = 200, idle: float = 60.0
    ) -> None:
        super().__init__("reads and draws documents", idle, files_each)
        self._limits = limits or Limits()
        self._turns = BoundedSemaphore(workers)

    def read(self, content: bytes, name: str, cancel: Cancel | None = None) -> tuple[Page, ...]:
        """As `readers.read_document`; also refuses what exceeds a limit or crashes its parser.

        Raises `Stopped` once `cancel` is set.
        """
        return self._read(
            Request(name), content, lambda reply, body: unpack_pages(reply, body, self._limits.characters), cancel
        )

    def cut(self, content: bytes, name: str, cut: Cut, cancel: Cancel) -> Chunks:
        """The chunks of a document, of which the number is limited too.

        They are cut in this process where the embedding model has no tokenizer file that a child could load.
        """
        if not cut.tokenizer:
            return cut_document(self.read(content, name, cancel), name, cut, cancel)
        request = Request(name, cut=replace(cut, tokenize=None))
        return self._read(
            request, content, lambda reply, body: unpack_chunks(reply, body, cut.size, self._limits), cancel
        )

    def draw(self, original: bytes, page: int, text: str, spans: Sequence[Span], width: int) -> PagePicture:
        """As `page_picture`; also refuses what exceeds a limit or crashes the process.

        Raises `Stopped` when the application ends.
        """
        check_size(len(original), "The document")
        drawing = Drawing(page, text, tuple(spans), width)
        request = Request(f"page {page} of a PDF of {len(original):,} bytes", drawing)
        try:
            return self._ask(request, original, lambda reply, body: unpack_picture(reply, body, drawing), Event())
        except ProcessLost as lost:
            raise DocumentRefused(
                f"Page {page} cannot be drawn, since the process that draws it {lost}.",
                hint=_START_AGAIN if isinstance(lost, StartFailed) else _PRINT_IT,
            ) from lost

    def _read(
        self, request: Request, content: bytes, unpack: Callable[[Reply, bytes], Value], cancel: Cancel | None
    ) -> Value:
        check_size(len(content), request.name)
        try:
            return self._ask(request, content, unpack, cancel or Event())
        except ProcessLost as lost:
            hints = {StartFailed: _START_AGAIN, TookTooLong: _SPLIT, OutOfMemory: _SPLIT, Killed: _SPLIT}
            raise DocumentRefused(
                f"{request.name}: cannot be read, since the process that parses it {lost}.",
                hint=hints.get(type(lost), _SAVE_AGAIN),
            ) from lost

    def _ask(self, request: Request, content: bytes, unpack: Callable[[Reply, bytes], Value], cancel: Cancel) -> Value:
        """Raises `DocumentRefused` as the reply says, `ProcessLost` and its kinds, and `Stopped`."""
        with self._turn(cancel):
            result = self._ask_one(request, content, unpack, cancel)
        if isinstance(result, DocumentRefused):
            raise result
        return result

    @contextmanager
    def _turn(self, cancel: Cancel) -> Iterator[None]:
        while not self._turns.acquire(timeout=POLL_SECONDS):
            if cancel.is_set():
                raise Stopped("Stopped by you.")
        try:
            yield
        finally:
            self._turns.release()

    def _ask_one(
        self,
        request: Request,
        content: bytes,
        unpack: Callable[[Reply, bytes], Value],
        cancel: Cancel,
        is_retry: bool = False,
    ) -> Value | DocumentRefused:
        process = self._take(self._start, is_new=is_retry)
        numbered = replace(request, id=process.served + 1)

        def read(header: Any, body: bytes) -> Value | DocumentRefused:
            reply = check_reply(header, numbered.id)
            if reply.is_out_of_memory:
                raise OutOfMemory
            if reply.message:
                return DocumentRefused(reply.message[:_MOST_SHOWN], hint=reply.hint[:_MOST_SHOWN])
            return unpack(reply, body)

        most = request.reply_bytes(self._limits)
        try:
            return self._exchange(
                process, numbered, content, read, request.name, seconds=self._limits.seconds, cancel=cancel, most=most
            )
        except ProcessLost as lost:
            # An earlier file may have damaged it, or it ended just now because it was idle.
            if process.served > 1 and not isinstance(lost, TookTooLong):
                return self._ask_one(request, content, unpack, cancel, is_retry=True)
            if isinstance(lost, OutOfMemory):
                raise OutOfMemory(f"needs more than {self._limits.memory // 2**20:,} MB of memory") from lost
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        kept = {name: value for name, value in os.environ.items() if name in KEPT_VARIABLES or name.startswith("LC_")}
        # NumPy, which some parser brings along, would start a thread for each core.
        environment = {**kept, "OPENBLAS_NUM_THREADS": "1"}
        return start_isolated("crag_core.retrieval.sandbox.worker", json.dumps(to_plain(self._limits)), environment)
