"""Messages between application and parsing process: frames of a JSON header and bytes.

No pickle: the process has read files of strangers, so the worst that it may send is a wrong text or picture.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain, to_plain
from crag_core.retrieval.chunking.headings import LONGEST_SECTION
from crag_core.retrieval.chunking.split import Chunk, Chunks
from crag_core.retrieval.chunking.text_splitter import Size
from crag_core.retrieval.page_view.page_image import Span
from crag_core.retrieval.page_view.text_boxes import Box
from crag_core.retrieval.readers.page import Page

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Enough for 100 000 pages, 50 000 chunks or 10 000 boxes, and too little to fill our memory with what stands in it.
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
    CHUNKS = "chunks"


@dataclass(frozen=True)
class Limits:
    """Of one file: `seconds` to work on it, bytes of `memory` meanwhile, then `characters` of text, `chunks` of them
    or bytes of `png`.

    `readers` is a module whose `READERS` the process has beside our own; "": none.
    """

    seconds: float
    memory: int
    characters: int = 0
    png: int = 0
    readers: str = ""
    chunks: int = 0

    def reply_bytes(self, request: Request) -> int:
        """Of the body of a reply; no character takes more than four."""
        if request.cutting is None:
            return max(4 * self.characters, self.png)
        # What chunks repeat is at most half of each; now and then the splitter repeats a little of it once more.
        return 4 * (
            min(3 * self.characters, self.chunks * request.cutting.size.characters) + self.chunks * LONGEST_SECTION
        )


@dataclass(frozen=True)
class Drawing:
    """What `page_picture` is asked for, beside the file."""

    page: int
    text: str
    spans: tuple[Span, ...]
    width: int


@dataclass(frozen=True)
class Cutting:
    """How the file is to be cut into chunks: as `Cut`, whose `tokenizer` is a file that the process reads."""

    tokens: int
    overlap: int
    tokenizer: str

    @property
    def size(self) -> Size:
        return Size(self.tokens, self.overlap)


@dataclass(frozen=True)
class Request:
    """`id` comes back in the reply; the bytes of the frame are the file's.

    With `drawing` a page of the file is to be drawn, with `cutting` it is to be cut into chunks, else only to be read.
    """

    id: int
    name: str
    drawing: Drawing | None = None
    cutting: Cutting | None = None


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
class Counted:
    """What there is to say of a document that was cut, as in `Chunks`; `sections` are the lengths of theirs."""

    pages: int
    characters: int
    sections: tuple[int, ...]


@dataclass(frozen=True)
class Reply:
    """Pages, chunks, a picture, a refusal (`message`, `hint`) or a fault.

    The bytes of pages are their texts as UTF-8, `lengths` of each; those of chunks likewise, and then their sections.
    `is_missing`: the page is not there to be drawn. `found` is the length of the text that makes too many chunks.
    """

    id: int
    numbers: tuple[int | None, ...] = ()
    lengths: tuple[int, ...] = ()
    message: str = ""
    hint: str = ""
    is_missing: bool = False
    fault: Fault | None = None
    drawn: Drawn | None = None
    counted: Counted | None = None
    found: int = 0


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


def pack_chunks(request_id: int, made: Chunks) -> tuple[Reply, bytes]:
    texts = [chunk.text.encode() for chunk in made.chunks]
    sections = [chunk.section.encode() for chunk in made.chunks]
    counted = Counted(made.pages, made.characters, tuple(len(section) for section in sections))
    reply = Reply(
        request_id, tuple(chunk.page for chunk in made.chunks), tuple(len(text) for text in texts), counted=counted
    )
    return reply, b"".join([*texts, *sections])


def unpack_pages(reply: Reply, body: bytes, characters: int) -> tuple[Page, ...]:
    """At least one page, each with text, at most so many characters in all; raises `BadFrame`."""
    if len(reply.numbers) != len(reply.lengths) or not _are_numbers(reply.numbers):
        raise BadFrame("expected a number from 1, or none, for each page")
    pages = tuple(map(Page, _unpack_texts(reply.lengths, body), reply.numbers))
    if any(not page.text.strip() for page in pages) or sum(len(page.text) for page in pages) > characters:
        raise BadFrame(f"expected pages with text, of at most {characters} characters in all")
    return pages


def unpack_chunks(reply: Reply, body: bytes, size: Size, limits: Limits) -> Chunks:
    """At least one chunk, each with text, none larger than it may be, nor too many; raises `BadFrame`."""
    counted = reply.counted
    if counted is None or not len(reply.numbers) == len(reply.lengths) == len(counted.sections) <= limits.chunks:
        raise BadFrame(f"expected at most {limits.chunks} chunks, each with a page and a section")
    if not _are_numbers(reply.numbers) or counted.pages < 0 or not 0 < counted.characters <= limits.characters:
        raise BadFrame("expected numbers from 1, or none, and as much text as a file may have")
    texts = _unpack_texts((*reply.lengths, *counted.sections), body)
    chunks = tuple(map(Chunk, texts[: len(reply.lengths)], reply.numbers, texts[len(reply.lengths) :]))
    for chunk in chunks:
        if not chunk.text.strip() or len(chunk.text) > size.characters or len(chunk.section) > LONGEST_SECTION:
            raise BadFrame(f"expected chunks with text, of at most {size.characters} characters each")
    return Chunks(chunks, counted.pages, counted.characters)


def _are_numbers(pages: Sequence[int | None]) -> bool:
    return all(number is None or number >= 1 for number in pages)


def _unpack_texts(lengths: Sequence[int], body: bytes) -> list[str]:
    if not lengths or min(lengths) < 0 or sum(lengths) != len(body):
        raise BadFrame("expected as many bytes as the texts have")
    texts, start = [], 0
    for length in lengths:
        try:
            texts.append(body[start : start + length].decode())
        except UnicodeDecodeError as error:
            raise BadFrame("expected UTF-8") from error
        start += length
    if any("\x00" in text for text in texts):
        raise BadFrame("expected text, found a zero in it")
    return texts
