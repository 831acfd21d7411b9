"""The result of every reader, and how large a document may be: more than people need, too little to fill memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crag_core.base.documents import LARGEST_FILE_MB
from crag_core.base.errors import DocumentRefused
from crag_core.base.text.display import counted

MEGABYTE = 1024 * 1024

MAX_BYTES = LARGEST_FILE_MB * MEGABYTE
# Of all files inside one Office document or book, unpacked.
MAX_UNPACKED = 300 * MEGABYTE
MAX_MEMBERS = 20_000
MAX_PAGES = 5_000
# Slides of a presentation, sheets of a workbook.
MAX_PARTS = 2_000
# Cells of all tables of one document.
MAX_CELLS = 1_000_000
SPANNED = "elements in spanned cells"
# Files in one folder that are added together, and all their bytes, which are already on the disk.
MAX_FILES = 20_000
MAX_FOLDER = 50 * 1024 * MEGABYTE
# Page numbers in one remark.
_MOST_NAMED = 20


@dataclass(frozen=True)
class Page:
    """Readable text. `number` counts from 1, and is None in formats that have no pages.

    `left_out` says what of it the text does not have ("a chart"); a page may have that and no text.
    """

    text: str
    number: int | None = None
    left_out: str = ""


def say_left_out(pages: Sequence[Page]) -> str:
    """What the text of a document lacks, in words for people; "": nothing is known to be missing."""
    by_what: dict[str, list[int]] = {}
    for page in pages:
        if page.left_out:
            by_what.setdefault(page.left_out, []).extend([page.number] if page.number else [])
    said = []
    for what, numbers in by_what.items():
        shown = ", ".join(map(str, numbers[:_MOST_NAMED])) + (" …" if len(numbers) > _MOST_NAMED else "")
        said.append(f"page{'s' * (len(numbers) > 1)} {shown}: {what}" if numbers else what)
    return f"Left out: {'; '.join(said)}." if said else ""


def name_lost(lost: Mapping[str, int], where: str = "") -> list[str]:
    """ "2 comments", "1 hidden row on sheet Fares": for `Page.left_out`."""
    return [f"{counted(number, what)}{where}" for what, number in lost.items() if number]


def check_count(name: str, count: int, limit: int, what: str) -> None:
    if count > limit:
        raise DocumentRefused(
            f"{name}: more than {limit:,} {what}, which is the limit.",
            hint="Split the document into smaller files and add those.",
        )


def format_size(size: int) -> str:
    return f"{size / MEGABYTE:.1f} MB"
