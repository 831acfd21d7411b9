"""What the application and its parsing process say to each other: frames of a JSON header and bytes.

No pickle: the process has read files of strangers, so the worst that it may send is a wrong text or picture.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any

from crag_core.errors import BadRecord
from crag_core.records import from_plain, to_plain
from crag_core.retrieval.boxes import Box
from crag_core.retrieval.page_picture import Span
from crag_core.retrieval.readers.page import Page

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Enough for 100 000 pages or 10 000 boxes, and too little to fill our memory with what stands in it.
MOST_HEADER = 2 * 1024 * 1024
_SIZES = struct.Struct(">II")


class BadFrame(Exception):
    """The other side sent what it never would by itself."""


class WireEnded(Exception):
    """The other side is gone."""


class Fault(StrEnum):
    """Why there is no result, where that is not for the reader to say."""

    MEMORY = "memory"
    TEXT = "text"


@dataclass(frozen=True)
class Limits:
    """Of one file: `seconds` to work on it, bytes of `memory` meanwhile, `characters` of text or bytes of `png` then.

    `readers` is a module whose `READERS` the process has beside our own; "": none.
    """

    seconds: float
    memory: int
    characters: int = 0
    png: int = 0
    readers: str = ""

    @property
    def reply_bytes(self) -> int:
        """Of the body of a reply; no character takes more than four."""
        return max(4 * self.characters, self.png)


@dataclass(frozen=True)
class Drawing:
    """What `page_picture` is asked for, beside the file."""

    page: int
    text: str
    spans: tuple[Span, ...]
    width: int


@dataclass(frozen=True)
class Request:
    """`id` comes back in the reply; the bytes of the frame are the file's.

    Without `drawing` the file is to be read; otherwise a page of it is to be drawn.
    """

    id: int
    name: str
    drawing: Drawing | None = None


@dataclass(frozen=True)
class Drawn:
    """What there is to say of a picture, as in `PagePicture`; the bytes of the frame are its PNG."""

    width: int
    height: int
    page: int
    pages: int
    boxes: tuple[Box, ...]
    found_share: float


@dataclass(frozen=True)
class Reply:
    """Pages, a picture, a refusal (`message`, `hint`) or a fault.

    The bytes of pages are their texts as UTF-8, `lengths` of each. `is_missing`: the page is not there to be drawn.
    """

    id: int
    numbers: tuple[int | None, ...] = ()
    lengths: tuple[int, ...] = ()
    message: str = ""
    hint: str = ""
    is_missing: bool = False
    fault: Fault | None = None
    drawn: Drawn | None = None


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


def pack_pages(request_id: int, pages: Sequence[Page]) -> tuple[Reply, bytes]:
    # Half a surrogate pair is no text, and readers drop it; "replace" is for one that forgets to.
    texts = [page.text.encode("utf-8", "replace") for page in pages]
    numbers = tuple(page.number for page in pages)
    return Reply(request_id, numbers, tuple(len(text) for text in texts)), b"".join(texts)


def check_reply(header: Any, request_id: int) -> Reply:
    """Raises `BadFrame` for anything but a reply to that request."""
    try:
        reply = from_plain(Reply, header)
    except BadRecord as error:
        raise BadFrame(str(error)) from error
    if reply.id != request_id:
        raise BadFrame(f"expected a reply to request {request_id}, found one to {reply.id}")
    return reply


def unpack_pages(reply: Reply, body: bytes, characters: int) -> tuple[Page, ...]:
    """At least one page, each with text, at most so many characters in all; raises `BadFrame`."""
    if not reply.lengths or min(reply.lengths) < 1 or sum(reply.lengths) != len(body):
        raise BadFrame("expected as many bytes as the pages have")
    if len(reply.numbers) != len(reply.lengths) or any(number is not None and number < 1 for number in reply.numbers):
        raise BadFrame("expected a number from 1, or none, for each page")
    pages, start = [], 0
    for number, length in zip(reply.numbers, reply.lengths, strict=True):
        try:
            pages.append(Page(body[start : start + length].decode(), number))
        except UnicodeDecodeError as error:
            raise BadFrame("expected UTF-8") from error
        start += length
    if any(page.text.isspace() for page in pages) or sum(len(page.text) for page in pages) > characters:
        raise BadFrame(f"expected pages with text, of at most {characters} characters in all")
    return tuple(pages)
