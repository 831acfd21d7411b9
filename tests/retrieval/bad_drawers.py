"""What hostile PDFs make of the process that draws them, told by their first word; the process imports this module."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crag_core.retrieval.page_view.page_image import PagePicture, Span, page_picture
from crag_core.retrieval.sandbox import worker

READERS: dict[str, object] = {}
HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 1, 1)


def draw(original: bytes, page: int, text: str, spans: Sequence[Span], width: int) -> PagePicture:
    word, _, rest = original.partition(b" ")
    if word == b"large":
        return PagePicture(HEAD.ljust(int(rest), b"\0"), 1, 1, 1, 1, (), 1.0)
    if word == b"bug":
        raise ZeroDivisionError("of ours")
    return page_picture(original, page, text, spans, width)


worker.page_picture = draw
