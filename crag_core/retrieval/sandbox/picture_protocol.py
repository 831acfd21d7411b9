"""The page image on the wire, checked against the request."""

from __future__ import annotations

import struct

from crag_core.retrieval.page_view.page_image import PagePicture
from crag_core.retrieval.page_view.text_boxes import Box
from crag_core.retrieval.sandbox.protocol import BadFrame, Drawing, Drawn, Reply

MOST_PNG = 20 * 1024 * 1024
"""Bytes; more than six million pixels of mere noise take."""

_LONGEST_SIDE = 8_000  # pixels
_MOST_PAGES = 2**20  # PDFium opens no more
_HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_SIZE = struct.Struct(">II")


def pack_picture(request_id: int, picture: PagePicture) -> tuple[Reply, bytes]:
    message = Drawn(picture.width, picture.height, picture.page, picture.pages, picture.boxes, picture.found_share)
    return Reply(request_id, drawn=message), picture.png


def unpack_picture(reply: Reply, body: bytes, asked: Drawing) -> PagePicture:
    """What `page_picture` could have made of `asked`, as far as that shows from outside; raises `BadFrame`."""
    found = reply.drawn
    if found is None:
        raise BadFrame("expected a picture")
    if not (1 <= found.width <= max(asked.width, 1) and 1 <= found.height <= _LONGEST_SIDE):
        raise BadFrame(f"expected a picture {asked.width} wide, found {found.width} x {found.height}")
    # A browser trusts this size, and makes room for it.
    if not body.startswith(_HEAD + _SIZE.pack(found.width, found.height)):
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
