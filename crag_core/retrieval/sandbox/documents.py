"""Parses, chunks and draws documents in child processes, within limits of time, memory and size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crag_core.base.errors import DocumentRefused
from crag_core.base.protocols import Cancel
from crag_core.retrieval.chunking.split import Chunks, Cut, cut_document
from crag_core.retrieval.page_view.page_image import PagePicture, Span
from crag_core.retrieval.readers import Page, check_size
from crag_core.retrieval.sandbox.child_process import OutOfMemory, ProcessLost, StartFailed, TookTooLong
from crag_core.retrieval.sandbox.messages import Drawing, Limits, Request, unpack_chunks, unpack_pages, unpack_picture
from crag_core.retrieval.sandbox.pool import ProcessPool, Unpack, Value

DRAWING = Limits(seconds=15.0)
"""Shorter, since somebody waits for the page."""
_SPLIT = "Split the document into smaller files, or open it in its own program, save it again and add that."
_SAVE_AGAIN = "The file may be damaged: open it in its own program, save it again and add it."
_PRINT_IT = "The file may be damaged: open it in a PDF program, print it to a new PDF, and add that one."
_START_AGAIN = "Try it again; if that does not help, close other programs or start the application again."


class DocumentProcesses(ProcessPool):
    """Reads, chunks and draws documents in child processes; thread-safe.

    Limits hold for one file or page; memory is limited where the system supports it. The application has one instance
    for reading and one for drawing, so that showing a page never waits for indexing.
    """

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
            return self.ask(request, original, lambda reply, body: unpack_picture(reply, body, drawing))
        except ProcessLost as lost:
            raise DocumentRefused(
                f"Page {page} cannot be drawn, since the process that draws it {lost}.",
                hint=_START_AGAIN if isinstance(lost, StartFailed) else _PRINT_IT,
            ) from lost

    def _read(self, request: Request, content: bytes, unpack: Unpack[Value], cancel: Cancel | None) -> Value:
        check_size(len(content), request.name)
        try:
            return self.ask(request, content, unpack, cancel)
        except ProcessLost as lost:
            hints = {StartFailed: _START_AGAIN, TookTooLong: _SPLIT, OutOfMemory: _SPLIT}
            raise DocumentRefused(
                f"{request.name}: cannot be read, since the process that parses it {lost}.",
                hint=hints.get(type(lost), _SAVE_AGAIN),
            ) from lost
