"""The child process that parses documents and draws pages: reads requests from stdin, writes replies to stdout.

Started by `pool`, with the limits as its last argument. It ends when its stdin does.
"""

from __future__ import annotations

import json
import os
import signal
import traceback
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from typing import IO

from crag_core.base.errors import DocumentRefused
from crag_core.base.serialization import from_plain
from crag_core.retrieval.chunking.split import cut_document
from crag_core.retrieval.page_view.page_image import page_picture
from crag_core.retrieval.readers import MAX_BYTES, READERS, read_document
from crag_core.retrieval.sandbox.child_setup import Frame, confine, forbid_processes, listen, take_pipes
from crag_core.retrieval.sandbox.messages import (
    Limits,
    Reply,
    Request,
    pack_chunks,
    pack_pages,
    pack_picture,
    write_frame,
)

# The application stops what takes too long; this is for when it has ended and the parser blocks all threads.
_GRACE = 2
# A text to be looked for may be a whole file, and a letter takes six bytes there. The application is trusted.
_MOST_REQUEST = 10 * MAX_BYTES


def main(arguments: list[str]) -> None:
    try:
        _run(arguments)
    except BaseException:
        traceback.print_exc()
        # At once: cleaning up would close the pipes first, and the application would miss the exit status.
        os._exit(1)


def _run(arguments: list[str]) -> None:
    limits = from_plain(Limits, json.loads(arguments[-1]))
    requests_from, replies_to = take_pipes()
    confine(limits.memory)
    if limits.readers:
        READERS.update(import_module(limits.readers).READERS)
    requests: SimpleQueue[Frame] = SimpleQueue()
    Thread(target=listen, args=(requests_from, requests, MAX_BYTES, _MOST_REQUEST), daemon=True).start()
    forbid_processes()
    write_frame(replies_to, Reply(0))
    while True:
        _answer_next(requests, replies_to, limits)


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
        if isinstance(error.__cause__, MemoryError):
            return Reply(id_, is_out_of_memory=True), b""
        return Reply(id_, message=error.message, hint=error.hint), b""
    except MemoryError:
        return Reply(id_, is_out_of_memory=True), b""


def _answer_next(requests: SimpleQueue[Frame], replies_to: IO[bytes], limits: Limits) -> None:
    header, content = requests.get()
    _set_alarm(int(limits.seconds) + _GRACE)
    write_frame(replies_to, *answer(from_plain(Request, header), content, limits))
    _set_alarm(0)


def _set_alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)
