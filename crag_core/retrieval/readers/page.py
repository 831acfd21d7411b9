"""The result of every reader, and how large a document may be: more than people need, too little to fill memory."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.documents import LARGEST_FILE_MB
from crag_core.base.errors import DocumentRefused

MEGABYTE = 1024 * 1024

MAX_BYTES = LARGEST_FILE_MB * MEGABYTE
# Of all files inside one Office document or book, unpacked.
MAX_UNPACKED = 300 * MEGABYTE
MAX_MEMBERS = 20_000
MAX_PAGES = 5_000
# Slides of a presentation, sheets of a workbook, chapters of a book.
MAX_PARTS = 2_000
# Cells of a workbook that hold something.
MAX_CELLS = 1_000_000
# Attachments of one e-mail that are read; the others are only named.
MAX_ATTACHMENTS = 50
# An e-mail attached to an e-mail attached to ...
MAX_NESTED_MAILS = 5
# Files in one archive or folder that are added together, and all bytes of an archive unpacked.
MAX_FILES = 20_000
MAX_BUNDLE = 1024 * MEGABYTE
# All bytes of a folder, which are already on the disk.
MAX_FOLDER = 50 * 1024 * MEGABYTE
# An archive that lies in an archive or a folder; it is in memory while it is read.
MAX_ARCHIVE = 200 * MEGABYTE
# Unpacked by packed size of one file in an archive. Tables of figures reach 50, files of one repeated letter 1,000.
MAX_RATIO = 200


@dataclass(frozen=True)
class Page:
    """Readable text. `number` counts from 1, and is None in formats that have no pages."""

    text: str
    number: int | None = None


def check_count(name: str, count: int, limit: int, what: str) -> None:
    """Raises `DocumentRefused` for more than `limit` of `what` ("slides")."""
    if count > limit:
        raise DocumentRefused(
            f"{name}: more than {limit:,} {what}, which is the limit.",
            hint="Split the document into smaller files and add those.",
        )


class CellCount:
    """Counts the cells of all tables of one document while they are read."""

    def __init__(self, name: str) -> None:
        self.name, self._filled, self._places = name, 0, 0

    def add(self, places: int, filled: int) -> None:
        """`places` counts empty cells too, since they take time; raises `DocumentRefused` beyond a limit."""
        self._places, self._filled = self._places + places, self._filled + filled
        check_count(self.name, self._filled, MAX_CELLS, "cells")
        check_count(self.name, self._places, 20 * MAX_CELLS, "cells, most of them empty")


def format_size(size: int) -> str:
    return f"{size / MEGABYTE:.1f} MB"
