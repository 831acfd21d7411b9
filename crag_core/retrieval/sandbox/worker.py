"""The child process that parses documents and draws pages: reads requests from stdin, writes replies to stdout.

Started by `process`, with the limits as its last argument. It ends when its stdin does.
"""

from __future__ import annotations

import json
import re
import signal
from importlib import import_module
from pathlib import Path
from typing import Any

from crag_core.base.errors import DocumentRefused
from crag_core.base.serialization import from_plain
from crag_core.retrieval.chunking.split import cut_document
from crag_core.retrieval.page_view.page_image import page_picture
from crag_core.retrieval.readers import MAX_BYTES, READERS, read_document
from crag_core.retrieval.sandbox.child import serve
from crag_core.retrieval.sandbox.messages import (
    Limits,
    Reply,
    Request,
    pack_chunks,
    pack_pages,
    pack_picture,
)

# The application stops what takes too long; this is for when it has ended and the parser blocks all threads.
_GRACE = 2
# A text to be looked for may be a whole file, and a letter takes six bytes there. The application is trusted.
_MOST_REQUEST = 10 * MAX_BYTES


def main(arguments: list[str]) -> None:
    limits = from_plain(Limits, json.loads(arguments[-1]))
    if limits.readers:
        READERS.update(import_module(limits.readers).READERS)

    def answer_in_time(header: Any, content: bytes) -> tuple[Reply, bytes]:
        signal.alarm(int(limits.seconds) + _GRACE)
        try:
            return answer(from_plain(Request, header), content, limits)
        finally:
            signal.alarm(0)

    serve(answer_in_time, MAX_BYTES, _MOST_REQUEST, limits.memory, limits.idle)


def answer(request: Request, content: bytes, limits: Limits) -> tuple[Reply, bytes]:
    id_, asked = request.id, request.drawing
    try:
        if asked:
            return pack_picture(id_, page_picture(content, asked.page, asked.text, asked.spans, asked.width))
        pages = read_document(content, request.name)
        if sum(len(page.text) for page in pages) > limits.characters:
            raise DocumentRefused(
                f"{request.name}: holds more than {limits.characters:,} characters of text.",
                hint="Split the document into smaller files and add those.",
            )
        if request.cut:
            return pack_chunks(id_, cut_document(pages, request.name, request.cut, limit=limits.chunks))
        return pack_pages(id_, pages)
    except DocumentRefused as error:
        # Many parsers call a refused allocation a fault of the file. A buffer that doubles is refused above a third of
        # the memory; if an earlier file took that, the application asks a new process.
        cause = error.__cause__
        if isinstance(cause, MemoryError) or (cause and _peak_memory() > limits.memory / 3):
            return Reply(id_, is_out_of_memory=True), b""
        return Reply(id_, message=error.message, hint=error.hint), b""
    except MemoryError:
        return Reply(id_, is_out_of_memory=True), b""


def _peak_memory() -> int:
    """Bytes that this process has had at most; 0 where the system does not tell.

    `getrusage` would count what the application had that started it.
    """
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
    return 1024 * int(found[1]) if found else 0
