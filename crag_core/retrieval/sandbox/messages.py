"""Messages between the application and a process that reads and draws documents: a JSON header and bytes.

No pickle: the process has read untrusted files, so the worst that it may send is a wrong text or picture.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain, to_plain
from crag_core.retrieval.chunking.split import LONGEST_SECTION, MAX_CHUNKS, Chunk, Chunks
from crag_core.retrieval.chunking.text_splitter import Cut
from crag_core.retrieval.page_view.highlight import Box
from crag_core.retrieval.page_view.page_image import PagePicture, Span
from crag_core.retrieval.readers.page import MAX_BYTES, Page

# Enough for 100 000 pages, 50 000 chunks or 10 000 boxes, and too little to fill our memory with what stands in it.
MOST_HEADER = 2 * 1024 * 1024
MOST_PNG = 20 * 1024 * 1024
"""Bytes; more than six million pixels of mere noise take."""
LONGEST_REMARK = 2_000  # characters
_LONGEST_SIDE = 8_000  # pixels
_MOST_PAGES = 2**20  # PDFium opens no more
_SIZES = struct.Struct(">II")
_PNG_HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


class BadFrame(Exception):
    pass


class WireEnded(Exception):
    pass


def write_frame(stream: IO[bytes], record: Any, body: bytes = b"") -> None:
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


@dataclass(frozen=True)
class Limits:
    """For one file: seconds of work, bytes of memory, characters of text, number of chunks.

    `idle` is after how many seconds without a file the process ends. `readers` is a module whose `READERS` it uses
    beside our own; "": none.
    """

    seconds: float = 120.0
    memory: int = 2 * 1024**3
    # No text file may be larger, so none has more characters.
    characters: int = MAX_BYTES
    chunks: int = MAX_CHUNKS
    idle: float = 60.0
    readers: str = ""


@dataclass(frozen=True)
class Drawing:
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
        texts = min(3 * limits.characters, limits.chunks * self.cut.characters)
        return 4 * (texts + limits.chunks * (LONGEST_SECTION + 1))


@dataclass(frozen=True)
class Reply:
    """Pages, chunks, a picture without its PNG, a refusal (`message`, `hint`), or that memory ran out.

    `numbers` are the page numbers of pages or chunks, `starts` where chunks start in their pages. The body is the PNG,
    or their texts as UTF-8, separated by zeros; for chunks their sections follow, and `pages` and `characters` are as
    in `Chunks`. `left_out` is that of each page, or of all.
    """

    id: int
    numbers: tuple[int | None, ...] = ()
    starts: tuple[int, ...] = ()
    message: str = ""
    hint: str = ""
    is_out_of_memory: bool = False
    picture: PagePicture | None = None
    pages: int = 0
    characters: int = 0
    left_out: tuple[str, ...] = ()


def check_reply(header: Any, request_id: int) -> Reply:
    """Raises `BadFrame` for anything but a reply to that request."""
    try:
        reply = from_plain(Reply, header)
    except BadRecord as error:
        raise BadFrame(str(error)) from error
    _expect(reply.id == request_id, f"a reply to request {request_id}")
    _expect(all(number is None or number >= 1 for number in reply.numbers), "page numbers from 1, or none")
    return reply


def _expect(is_so: bool, what: str) -> None:
    if not is_so:
        raise BadFrame(f"expected {what}")


def pack_pages(request_id: int, pages: Sequence[Page]) -> tuple[Reply, bytes]:
    # Half a surrogate pair is no text, and readers drop it; "replace" is for one that forgets to.
    body = "\0".join(page.text for page in pages).encode("utf-8", "replace")
    left_out = tuple(page.left_out[:LONGEST_REMARK] for page in pages)
    return Reply(request_id, tuple(page.number for page in pages), left_out=left_out), body


def unpack_pages(reply: Reply, body: bytes, characters: int) -> tuple[Page, ...]:
    """At least one page with text, at most so many characters in all; raises `BadFrame`."""
    texts = _unpack_texts(body, len(reply.numbers))
    is_told = len(reply.left_out) == len(texts) and all(len(one) <= LONGEST_REMARK for one in reply.left_out)
    _expect(is_told, f"{len(texts)} short remarks")
    pages = tuple(map(Page, texts, reply.numbers, reply.left_out))
    _expect(any(map(str.strip, texts)) and all(page.text.strip() or page.left_out for page in pages), "pages with text")
    _expect(sum(map(len, texts)) <= characters, f"at most {characters} characters in all")
    return pages


def pack_chunks(request_id: int, made: Chunks) -> tuple[Reply, bytes]:
    texts = [chunk.text for chunk in made.chunks] + [chunk.section for chunk in made.chunks]
    reply = Reply(
        request_id,
        tuple(chunk.page for chunk in made.chunks),
        tuple(chunk.start for chunk in made.chunks),
        pages=made.pages,
        characters=made.characters,
        left_out=(made.left_out[:LONGEST_REMARK],),
    )
    return reply, "\0".join(texts).encode()


def unpack_chunks(reply: Reply, body: bytes, cut: Cut, limits: Limits) -> Chunks:
    """At least one chunk, each with text, none larger than it may be, nor too many; raises `BadFrame`."""
    count = len(reply.numbers)
    _expect(0 < count <= limits.chunks, f"1 to {limits.chunks} chunks")
    _expect(reply.pages >= 0 and 0 < reply.characters <= limits.characters, "as much text as a file may have")
    _expect(len(reply.starts) == count and min(reply.starts) >= 0, f"{count} places")
    texts = _unpack_texts(body, 2 * count)
    chunks = tuple(map(Chunk, texts[:count], reply.numbers, texts[count:], reply.starts))
    for chunk in chunks:
        is_sound = chunk.text.strip() and len(chunk.text) <= cut.characters and len(chunk.section) <= LONGEST_SECTION
        _expect(bool(is_sound), f"chunks with text, of at most {cut.characters} characters each")
    return Chunks(chunks, reply.pages, reply.characters, " ".join(reply.left_out)[:LONGEST_REMARK])


def _unpack_texts(body: bytes, count: int) -> list[str]:
    _expect(body.count(b"\0") == count - 1, f"{count} texts")
    try:
        return body.decode().split("\0")
    except UnicodeDecodeError as error:
        raise BadFrame("expected UTF-8") from error


def pack_picture(request_id: int, picture: PagePicture) -> tuple[Reply, bytes]:
    return Reply(request_id, picture=replace(picture, png=b"")), picture.png


def unpack_picture(reply: Reply, body: bytes, asked: Drawing) -> PagePicture:
    """What `page_picture` could have made of `asked`, as far as that shows from outside; raises `BadFrame`."""
    found = reply.picture
    if found is None:
        raise BadFrame("expected a picture")
    is_sound = 1 <= found.width <= max(asked.width, 1) and 1 <= found.height <= _LONGEST_SIDE
    _expect(is_sound, f"a picture {asked.width} wide, found {found.width} x {found.height}")
    # A browser trusts this size, and makes room for it.
    head = _PNG_HEAD + struct.pack(">II", found.width, found.height)
    _expect(body.startswith(head), f"a PNG of {found.width} x {found.height}")
    _expect(found.page == asked.page <= found.pages <= _MOST_PAGES, f"page {asked.page} of the document")
    _expect(0 <= found.found_share <= 1, f"a share, found {found.found_share}")
    are_sound = all(_is_sound(box, found, asked) for box in found.boxes)
    _expect(are_sound, "boxes on the page, each of a sentence that was asked for")
    return replace(found, png=body)


def _is_sound(box: Box, found: PagePicture, asked: Drawing) -> bool:
    if not (0 <= box.left < box.right <= found.width and 0 <= box.top < box.bottom <= found.height):
        return False
    if box.span is None:
        return box.kept is None
    return 0 <= box.span < len(asked.spans) and box.kept is asked.spans[box.span][2]
