"""Messages between the application and a process that reads and draws documents.

No pickle: the process has read untrusted files, so the worst that it may send is a wrong text or picture.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain
from crag_core.retrieval.chunking.split import LONGEST_SECTION, MAX_CHUNKS, Chunk, Chunks, Cut
from crag_core.retrieval.chunking.text_splitter import Size
from crag_core.retrieval.page_view.highlight import Box
from crag_core.retrieval.page_view.page_image import PagePicture, Span
from crag_core.retrieval.readers.page import MAX_BYTES, Page
from crag_core.retrieval.sandbox.child import MOST_HEADER, BadFrame

MOST_PNG = 20 * 1024 * 1024
"""Bytes; more than six million pixels of mere noise take."""
LONGEST_REMARK = 2_000  # characters
_LONGEST_SIDE = 8_000  # pixels
_MOST_PAGES = 2**20  # PDFium opens no more
_PNG_HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_PNG_SIZE = struct.Struct(">II")


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
    their sections follow, and `pages` and `characters` are as in `Chunks`. `left_out` is that of each page, or of all.
    """

    id: int
    numbers: tuple[int | None, ...] = ()
    message: str = ""
    hint: str = ""
    is_out_of_memory: bool = False
    drawn: Drawn | None = None
    pages: int = 0
    characters: int = 0
    left_out: tuple[str, ...] = ()


def check_reply(header: Any, request_id: int) -> Reply:
    """Raises `BadFrame` for anything but a reply to that request."""
    try:
        reply = from_plain(Reply, header)
    except BadRecord as error:
        raise BadFrame(str(error)) from error
    if reply.id != request_id:
        raise BadFrame(f"expected a reply to request {request_id}, found one to {reply.id}")
    return reply


def pack_pages(request_id: int, pages: Sequence[Page]) -> tuple[Reply, bytes]:
    # Half a surrogate pair is no text, and readers drop it; "replace" is for one that forgets to.
    body = "\0".join(page.text for page in pages).encode("utf-8", "replace")
    left_out = tuple(page.left_out[:LONGEST_REMARK] for page in pages)
    return Reply(request_id, tuple(page.number for page in pages), left_out=left_out if any(left_out) else ()), body


def unpack_pages(reply: Reply, body: bytes, characters: int) -> tuple[Page, ...]:
    """At least one page with text, at most so many characters in all; raises `BadFrame`."""
    texts = _unpack_texts(body, len(reply.numbers))
    _check_numbers(reply.numbers)
    remarks = reply.left_out or ("",) * len(texts)
    if len(remarks) != len(texts) or any(len(one) > LONGEST_REMARK for one in remarks):
        raise BadFrame(f"expected {len(texts)} short remarks or none")
    pages = tuple(map(Page, texts, reply.numbers, remarks))
    if not all(page.text.strip() or page.left_out for page in pages) or not any(map(str.strip, texts)):
        raise BadFrame("expected pages with text")
    if sum(map(len, texts)) > characters:
        raise BadFrame(f"expected at most {characters} characters in all")
    return pages


def pack_chunks(request_id: int, made: Chunks) -> tuple[Reply, bytes]:
    texts = [chunk.text for chunk in made.chunks] + [chunk.section for chunk in made.chunks]
    numbers = tuple(chunk.page for chunk in made.chunks)
    reply = Reply(
        request_id, numbers, pages=made.pages, characters=made.characters, left_out=(made.left_out[:LONGEST_REMARK],)
    )
    return reply, "\0".join(texts).encode()


def unpack_chunks(reply: Reply, body: bytes, size: Size, limits: Limits) -> Chunks:
    """At least one chunk, each with text, none larger than it may be, nor too many; raises `BadFrame`."""
    count = len(reply.numbers)
    if not 0 < count <= limits.chunks:
        raise BadFrame(f"expected 1 to {limits.chunks} chunks")
    if reply.pages < 0 or not 0 < reply.characters <= limits.characters:
        raise BadFrame("expected as much text as a file may have")
    _check_numbers(reply.numbers)
    texts = _unpack_texts(body, 2 * count)
    chunks = tuple(map(Chunk, texts[:count], reply.numbers, texts[count:]))
    for chunk in chunks:
        if not chunk.text.strip() or len(chunk.text) > size.characters or len(chunk.section) > LONGEST_SECTION:
            raise BadFrame(f"expected chunks with text, of at most {size.characters} characters each")
    return Chunks(chunks, reply.pages, reply.characters, " ".join(reply.left_out)[:LONGEST_REMARK])


def _check_numbers(pages: Sequence[int | None]) -> None:
    if not all(number is None or number >= 1 for number in pages):
        raise BadFrame("expected page numbers from 1, or none")


def _unpack_texts(body: bytes, count: int) -> list[str]:
    if body.count(b"\0") != count - 1:
        raise BadFrame(f"expected {count} texts")
    try:
        return body.decode().split("\0")
    except UnicodeDecodeError as error:
        raise BadFrame("expected UTF-8") from error


def pack_picture(request_id: int, picture: PagePicture) -> tuple[Reply, bytes]:
    drawn = Drawn(picture.width, picture.height, picture.page, picture.pages, picture.boxes, picture.found_share)
    return Reply(request_id, drawn=drawn), picture.png


def unpack_picture(reply: Reply, body: bytes, asked: Drawing) -> PagePicture:
    """What `page_picture` could have made of `asked`, as far as that shows from outside; raises `BadFrame`."""
    found = reply.drawn
    if found is None:
        raise BadFrame("expected a picture")
    if not (1 <= found.width <= max(asked.width, 1) and 1 <= found.height <= _LONGEST_SIDE):
        raise BadFrame(f"expected a picture {asked.width} wide, found {found.width} x {found.height}")
    # A browser trusts this size, and makes room for it.
    if not body.startswith(_PNG_HEAD + _PNG_SIZE.pack(found.width, found.height)):
        raise BadFrame(f"expected a PNG of {found.width} x {found.height}")
    if not (found.page == asked.page <= found.pages <= _MOST_PAGES):
        raise BadFrame(f"expected page {asked.page}, found {found.page} of {found.pages}")
    if not 0 <= found.found_share <= 1:
        raise BadFrame(f"expected a share, found {found.found_share}")
    if not all(_is_sound(box, found, asked) for box in found.boxes):
        raise BadFrame("expected boxes on the page, each of a sentence that was asked for")
    return PagePicture(body, found.width, found.height, found.page, found.pages, found.boxes, found.found_share)


def _is_sound(box: Box, found: Drawn, asked: Drawing) -> bool:
    if not (0 <= box.left < box.right <= found.width and 0 <= box.top < box.bottom <= found.height):
        return False
    if box.span is None:
        return box.kept is None
    return 0 <= box.span < len(asked.spans) and box.kept is asked.spans[box.span][2]
