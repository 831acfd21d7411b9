"""Draws PDF pages in child processes."""

from __future__ import annotations

from collections.abc import Sequence

from crag_core.base.errors import DocumentMissing, DocumentRefused
from crag_core.retrieval.page_view.page_image import PagePicture, Span
from crag_core.retrieval.readers import MAX_BYTES, load_content
from crag_core.retrieval.sandbox.picture_protocol import MOST_PNG, unpack_picture
from crag_core.retrieval.sandbox.pool import FILES_EACH, IDLE_SECONDS, WORKERS, ParsePool
from crag_core.retrieval.sandbox.process import ProcessLost, StartFailed, Task, TookTooLong
from crag_core.retrieval.sandbox.protocol import Drawing, Fault, Limits, Reply

_SECONDS = 15.0
_MEMORY = 2 * 1024**3
_MOST_TOLD = 2_000  # characters
_PRINT_IT = "The file may be damaged: open it in a PDF program, print it to a new PDF, and add that one."


class Drawer:
    """Draws pages in processes that read no documents, so that somebody who looks never waits for an indexing.

    Any thread may use it. Limits hold for one page: `seconds`, and bytes of `memory` (where the system can limit it). A
    page that takes all its time keeps one of at most `workers` processes. `readers` is as for `Parser`.
    """

    def __init__(
        self,
        *,
        seconds: float = _SECONDS,
        memory: int = _MEMORY,
        workers: int = WORKERS,
        files_each: int = FILES_EACH,
        idle: float = IDLE_SECONDS,
        readers: str = "",
    ) -> None:
        self._limits = Limits(seconds, memory, png=MOST_PNG, readers=readers)
        self._pool = ParsePool(self._limits, workers, files_each, idle)

    def draw(self, original: bytes, page: int, text: str, spans: Sequence[Span], width: int) -> PagePicture:
        """As `page_picture`, with the same errors.

        It also refuses what goes over a limit and what breaks the process. Raises `Stopped` when the application ends.
        """
        if len(original) > MAX_BYTES:
            load_content(original, "The document")  # refuses it
        asked = Drawing(page, text, tuple(spans), width)

        def unpack(reply: Reply, body: bytes) -> PagePicture:
            if reply.fault is Fault.MEMORY:
                raise _refuse(page, f"that takes more than {self._limits.memory // 2**20:,} MB of memory")
            if reply.message:
                kind = DocumentMissing if reply.is_missing else DocumentRefused
                raise kind(reply.message[:_MOST_TOLD], hint=reply.hint[:_MOST_TOLD])
            return unpack_picture(reply, body, asked)

        try:
            return self._pool.ask(Task(f"page {page} of a PDF of {len(original):,} bytes", original, asked), unpack)
        except TookTooLong:
            raise _refuse(page, f"that takes longer than {self._limits.seconds:g} seconds") from None
        except StartFailed as failed:
            raise DocumentRefused(
                f"Page {page} is not drawn: the process that draws pages {failed} before it saw the file.",
                hint="Open it again; if that does not help, close other programs or start the application again.",
            ) from failed
        except ProcessLost as lost:
            raise _refuse(page, f"the process that drew it {lost}") from lost

    def close(self) -> None:
        """End all processes now; who is waiting for one, or comes later, gets `Stopped`."""
        self._pool.close()


def _refuse(page: int, reason: str) -> DocumentRefused:
    return DocumentRefused(f"Page {page} cannot be drawn: {reason}.", hint=_PRINT_IT)
