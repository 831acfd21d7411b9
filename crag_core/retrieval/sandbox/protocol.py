"""Messages between the application and a child process: frames of a JSON header and bytes.

No pickle: the process has read untrusted files, so the worst that it may send is a wrong text or picture.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain, to_plain
from crag_core.retrieval.chunking.headings import LONGEST_SECTION
from crag_core.retrieval.chunking.split import MAX_CHUNKS, Cut
from crag_core.retrieval.page_view.page_image import Span
from crag_core.retrieval.page_view.text_boxes import Box
from crag_core.retrieval.readers.limits import MAX_BYTES

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Enough for 100 000 pages, 50 000 chunks or 10 000 boxes, and too little to fill our memory with what stands in it.
MOST_HEADER = 2 * 1024 * 1024
MOST_PNG = 20 * 1024 * 1024
"""Bytes; more than six million pixels of mere noise take."""
_SIZES = struct.Struct(">II")


class BadFrame(Exception):
    """The other side sent something that is no valid message."""


class WireEnded(Exception):
    """The other side is gone."""


@dataclass(frozen=True)
class Limits:
    """For one file: seconds of work, bytes of memory, characters of text, number of chunks.

    `readers` is a module whose `READERS` the process uses beside our own; "": none.
    """

    seconds: float = 120.0
    memory: int = 2 * 1024**3
    # No text file may be larger, so none has more characters.
    characters: int = MAX_BYTES
    chunks: int = MAX_CHUNKS
    readers: str = ""


@dataclass(frozen=True)
class Drawing:
    """The arguments of `page_picture` beside the file."""

    page: int
    text: str
    spans: tuple[Span, ...]
    width: int


@dataclass(frozen=True)
class Request:
    """To draw a page (`drawing`), to chunk a document (`cut`), or only to read it.

    The body of the frame is the file. `name` is for its reader and for the log; `id` comes back in the reply.
    """

    name: str
    drawing: Drawing | None = None
    cut: Cut | None = None
    id: int = 0

    def reply_bytes(self, limits: Limits) -> int:
        """The most in the body of a reply; no character takes more than four."""
        if self.drawing:
            return MOST_PNG
        if self.cut is None:
            return 4 * limits.characters + MOST_HEADER  # a zero between the texts
        # At most half of a chunk is overlap; now and then the splitter repeats a little of it once more.
        texts = min(3 * limits.characters, limits.chunks * self.cut.size.characters)
        return 4 * (texts + limits.chunks * (LONGEST_SECTION + 1))


@dataclass(frozen=True)
class Drawn:
    """A `PagePicture` without its PNG, which is the body of the frame."""

    width: int
    height: int
    page: int
    pages: int
    boxes: tuple[Box, ...]
    found_share: float


@dataclass(frozen=True)
class Reply:
    """Pages, chunks, a picture, a refusal (`message`, `hint`), or that memory ran out.

    `numbers` are the page numbers of pages or chunks. The body is their texts as UTF-8, separated by zeros; for chunks
    their sections follow, and `pages` and `characters` are as in `Chunks`.
    """

    id: int
    numbers: tuple[int | None, ...] = ()
    message: str = ""
    hint: str = ""
    is_out_of_memory: bool = False
    drawn: Drawn | None = None
    pages: int = 0
    characters: int = 0


def write_frame(stream: IO[bytes], record: DataclassInstance, body: bytes = b"") -> None:
    header = json.dumps(to_plain(record)).encode()
    stream.write(_SIZES.pack(len(header), len(body)) + header)
    stream.write(body)
    stream.flush()


def read_frame(stream: IO[bytes], most: int, most_header: int = MOST_HEADER) -> tuple[Any, bytes]:
    """The header, which may be any JSON value, and at most `most` bytes; raises `BadFrame` or `WireEnded`."""
    header_size, body_size = _SIZES.unpack(_read(stream, _SIZES.size))
    if header_size > most_header or body_size > most:
        raise BadFrame(f"expected at most {most_header} and {most} bytes, found {header_size} and {body_size}")
    try:
        header = json.loads(_read(stream, header_size))
    except (ValueError, RecursionError) as error:
        raise BadFrame("expected JSON") from error
    return header, _read(stream, body_size)


def _read(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise WireEnded
    return content


def check_reply(header: Any, request_id: int) -> Reply:
    """Raises `BadFrame` for anything but a reply to that request."""
    try:
        reply = from_plain(Reply, header)
    except BadRecord as error:
        raise BadFrame(str(error)) from error
    if reply.id != request_id:
        raise BadFrame(f"expected a reply to request {request_id}, found one to {reply.id}")
    return reply
