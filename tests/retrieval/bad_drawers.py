"""What hostile PDFs make of the process that draws them, told by their first word; the process imports this module."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crag_core.retrieval.page_view.page_image import PagePicture, Span, page_picture
from crag_core.retrieval.sandbox import worker
from tests.retrieval import bad_readers

READERS = bad_readers.READERS
HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 1, 1)


def draw(original: bytes, page: int, text: str, spans: Sequence[Span], width: int) -> PagePicture:
    """Do as a reader of that name does to the rest of the file, then draw the rest."""
    word, _, rest = original.partition(b" ")
    if word == b"large":
        return PagePicture(HEAD.ljust(int(rest), b"\0"), 1, 1, 1, 1, (), 1.0)
    if word == b"bug":
        raise ZeroDivisionError("of ours")
    if deed := READERS.get(f".{word[:20].decode('latin-1')}"):
        deed(rest, "")
        original = rest
    return page_picture(original, page, text, spans, width)


worker.page_picture = draw
