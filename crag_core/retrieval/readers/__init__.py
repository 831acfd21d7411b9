"""From a file to pages of text, or a refusal that says what is wrong and what to do.

A reader is a function (content, name) -> pages that raises `DocumentRefused`; a new format is one such function in one
line of `READERS`.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path, PurePath

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers.file_kind import LIBRARY, check_kind, refuse_extension
from crag_core.retrieval.readers.library import read_by_library, read_markdown
from crag_core.retrieval.readers.page import MAX_BYTES, Page, format_size, say_left_out
from crag_core.retrieval.readers.pdf.document import read_pdf
from crag_core.retrieval.readers.text import read_csv, read_text

__all__ = ["MAX_BYTES", "READERS", "Page", "Reader", "read_document", "say_left_out"]

Reader = Callable[[bytes, str], tuple[Page, ...]]


READERS: dict[str, Reader] = {
    **dict.fromkeys(LIBRARY, read_by_library),
    ".csv": read_csv,
    ".markdown": read_markdown,
    ".md": read_markdown,
    ".pdf": read_pdf,
    ".tsv": read_csv,
    ".txt": read_text,
}

_log = logging.getLogger(__name__)


def read_document(path_or_bytes: Path | str | bytes, name: str = "") -> tuple[Page, ...]:
    """The pages that hold text, at least one, and those of which something was left out; else raises `DocumentRefused`.

    `name` decides the format by its extension and appears in messages; for a path it defaults to the file's own name.
    """
    shown = name or (PurePath(path_or_bytes).name if isinstance(path_or_bytes, str | Path) else "the document")
    extension = PurePath(shown).suffix.lower()
    if extension not in READERS:
        raise refuse_extension(shown, extension, READERS)
    content = load_content(path_or_bytes, shown)
    check_kind(content, extension, shown)
    try:
        pages = tuple(page for page in READERS[extension](content, shown) if page.text.strip() or page.left_out)
    except DocumentRefused:
        raise
    # Parsers fail on hostile files in ways of their own; one such file must not stop the others.
    except Exception as error:
        _log.exception("%s: the reader failed", shown)
        raise DocumentRefused(
            f"{shown}: cannot be read ({type(error).__name__} while parsing).",
            hint="The file may be damaged: open it in its own program, save it again and add it.",
        ) from error
    if not any(page.text.strip() for page in pages):
        raise DocumentRefused(
            f"{shown}: holds no readable text. {say_left_out(pages)}".strip(),
            hint="Check in its own program that the file shows text, then add it again.",
        )
    return pages


def check_size(size: int, name: str) -> None:
    """Raises `DocumentRefused` for more than `MAX_BYTES`."""
    if size > MAX_BYTES:
        raise DocumentRefused(
            f"{name}: {format_size(size)} is over the limit of {format_size(MAX_BYTES)}.",
            hint="Split the document into smaller files and add those.",
        )


def _open_at_once(path: str, flags: int) -> int:
    """Of what the system makes up as it is read, such as /proc/kmsg, nothing is waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def load_content(path_or_bytes: Path | str | bytes, name: str) -> bytes:
    """The raw bytes; raises `DocumentRefused` when missing, unreadable, empty or larger than `MAX_BYTES`."""
    content = path_or_bytes
    if not isinstance(content, bytes):
        try:
            status = Path(content).stat()
            if not stat.S_ISREG(status.st_mode):
                raise DocumentRefused(f"{name}: is no file but a folder, a device or a pipe.", hint="Add files only.")
            check_size(status.st_size, name)
            with open(content, "rb", opener=_open_at_once) as file:
                content = file.read(MAX_BYTES + 1) or b""
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DocumentRefused(
                f"{name}: cannot be read ({reason}).", hint="Check that the file exists and may be read."
            ) from error
    check_size(len(content), name)
    if not content:
        raise DocumentRefused(f"{name}: the file is empty (0 bytes).", hint="Save or download the file again.")
    return content
