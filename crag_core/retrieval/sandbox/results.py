"""Pages, chunks and page images as a child process sends them, checked against the request."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crag_core.retrieval.chunking.headings import LONGEST_SECTION
from crag_core.retrieval.chunking.split import Chunk, Chunks
from crag_core.retrieval.chunking.text_splitter import Size
from crag_core.retrieval.page_view.page_image import PagePicture
from crag_core.retrieval.page_view.text_boxes import Box
from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.sandbox.protocol import BadFrame, Drawing, Drawn, Limits, Reply

_LONGEST_SIDE = 8_000  # pixels
_MOST_PAGES = 2**20  # PDFium opens no more
_PNG_HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_PNG_SIZE = struct.Struct(">II")


def pack_pages(request_id: int, pages: Sequence[Page]) -> tuple[Reply, bytes]:
    # Half a surrogate pair is no text, and readers drop it; "replace" is for one that forgets to.
    body = "\0".join(page.text for page in pages).encode("utf-8", "replace")
    return Reply(request_id, tuple(page.number for page in pages)), body


def unpack_pages(reply: Reply, body: bytes, characters: int) -> tuple[Page, ...]:
    """At least one page, each with text, at most so many characters in all; raises `BadFrame`."""
    texts = _unpack_texts(body, len(reply.numbers))
    _check_numbers(reply.numbers)
    if not all(map(str.strip, texts)) or sum(map(len, texts)) > characters:
        raise BadFrame(f"expected pages with text, of at most {characters} characters in all")
    return tuple(map(Page, texts, reply.numbers))


def pack_chunks(request_id: int, made: Chunks) -> tuple[Reply, bytes]:
    texts = [chunk.text for chunk in made.chunks] + [chunk.section for chunk in made.chunks]
    numbers = tuple(chunk.page for chunk in made.chunks)
    return Reply(request_id, numbers, pages=made.pages, characters=made.characters), "\0".join(texts).encode()


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
    return Chunks(chunks, reply.pages, reply.characters)


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
