"""Splits pages into chunks with the headings above them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING

from crag_core.base.errors import DocumentRefused, Stopped
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.protocols import Cancel
from crag_core.base.text.words import storable
from crag_core.retrieval.chunking.text_splitter import Count, Cut, Tokenize, split_text
from crag_core.retrieval.readers.page import say_left_out

if TYPE_CHECKING:
    from crag_core.retrieval.readers import Page

# Some 17 MB of English, or fifteen long novels: the built-in model needs about ten minutes for them on two cores, and
# the application 50 MB.
MAX_CHUNKS = 20_000

_SHORT = 32  # characters
_REMEMBERED = 2**16  # texts
# In these a line that starts with "#" is no heading.
_UNHEADED = (".txt", ".csv", ".tsv", ".pdf")
_TABLES = (".csv", ".tsv")
LONGEST_TITLE = 100  # characters
JOINED = " › "
LONGEST_SECTION = 200
_LINE = re.compile(r"(?m)^(?P<fence>```|~~~)|^(?P<marks>#{1,6}) +(?P<title>\S.*)$")
_HEADINGS = re.compile(r"(?:#{1,6} .*\s*)*")


USUAL = Cut()


@dataclass(frozen=True)
class Chunk:
    """`start` is its offset in the text of its page; `page` is None in formats without pages; `section` is the headings
    above it, else the title of the document."""

    text: str
    page: int | None = None
    section: str = ""
    start: int = 0


@dataclass(frozen=True)
class Chunks:
    """A document for the index. `pages` is the highest page number, `characters` the length of its text.

    `left_out` says what its text lacks, in words for people; "": nothing is known to be missing.
    """

    chunks: tuple[Chunk, ...]
    pages: int
    characters: int
    left_out: str = ""


def cut_pages(pages: Sequence[Page], name: str, cut: Cut = USUAL) -> Iterator[Chunk]:
    """In reading order; a chunk never crosses a page. Takes linear time."""
    counted = counter(cut)
    suffix = PurePath(name).suffix.lower()
    is_headed = suffix not in _UNHEADED
    opening = next((page.text for page in pages if page.text.strip()), "")
    title = "" if suffix in _TABLES else title_of(storable(opening), is_headed)
    for page in pages:
        text = storable(page.text)
        places = list(headings_in(text)) if is_headed else []
        for start, piece in split_text(text, cut, counted):
            yield Chunk(piece, page.number, section_at(places, start, piece) or title, start)


def title_of(text: str, is_headed: bool = True) -> str:
    """The first heading of the highest level, else the first line; "" where that is long, or a sentence.

    `is_headed`: a line that starts with "#" is a heading.
    """
    found = (match["title"] for match in _heading_lines(text) if match["marks"] == "#") if is_headed else iter(())
    line = next(found, None) or (first[0] if (first := re.search(r"\S.*", text)) else "")
    title = " ".join(line.strip("#*_: ").split())
    is_name = bool(title) and (title[-1].isalnum() or title[-1] in ")]”\"'")
    return title if is_name and len(title) <= LONGEST_TITLE else ""


def cut_document(
    pages: Sequence[Page], name: str, cut: Cut, cancel: Cancel | None = None, limit: int = MAX_CHUNKS
) -> Chunks:
    """All chunks at once. Raises `DocumentRefused` for more than `limit`, and `Stopped` once `cancel` is set."""
    characters = sum(len(page.text) for page in pages)
    chunks: list[Chunk] = []
    for chunk in cut_pages(pages, name, cut):
        if cancel is not None and cancel.is_set():
            raise Stopped()
        # The rest is not cut: that may take longer than the file has time.
        if len(chunks) == limit:
            raise DocumentRefused(
                f"{name}: its {characters:,} characters of text make more than {limit:,} chunks, which is the limit.",
                hint="Split the document into smaller files and add those, or leave out data that nobody asks "
                "questions about.",
            )
        chunks.append(chunk)
    return Chunks(tuple(chunks), max((page.number or 0 for page in pages), default=0), characters, say_left_out(pages))


def counter(cut: Cut) -> Count:
    """Counts the tokens of a text by `tokenize`, else by the file, else as LlamaIndex does."""
    if cut.tokenize is None and cut.tokenizer:
        return _remembering(_load_counter(cut.tokenizer))
    tokenize = cut.tokenize or _find_tokenizer()
    return _remembering(lambda text: len(tokenize(text)))


def _remembering(count: Count) -> Count:
    """Caches short texts: text without spaces is cut letter by letter, and tables repeat words in every row."""
    remembered = lru_cache(maxsize=_REMEMBERED)(count)
    return lambda text: remembered(text) if len(text) <= _SHORT else count(text)


@lru_cache(maxsize=1)
def _load_counter(path: str) -> Count:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def _find_tokenizer() -> Tokenize:
    import_llama_index()
    from llama_index.core.utils import get_tokenizer

    return get_tokenizer()


def section_at(places: Sequence[tuple[int, str]], start: int, piece: str) -> str:
    """The headings above the start of a piece, outermost first; "" above the first heading.

    `places` are those of Markdown with their offsets.
    """
    # A chunk that begins with headings belongs to them.
    opening = _HEADINGS.match(piece)
    begun = start + (opening.end() if opening else 0)
    index = bisect_right(places, max(begun - 1, start), key=itemgetter(0))
    return places[index - 1][1] if index else ""


def headings_in(text: str) -> Iterator[tuple[int, str]]:
    path: list[tuple[int, str]] = []
    for match in _heading_lines(text):
        level = len(match["marks"])
        # A line may also end with "#". Titles are cut, since whole ones in every path would take quadratic time.
        title = (match["title"][0] + match["title"][1:].rstrip(" #"))[:LONGEST_SECTION]
        path = [*((depth, above) for depth, above in path if depth < level), (level, title)]
        yield match.start(), JOINED.join(above for _, above in path)[:LONGEST_SECTION]


def _heading_lines(text: str) -> Iterator[re.Match[str]]:
    in_code = False
    for match in _LINE.finditer(text):
        if match["fence"]:
            in_code = not in_code
        elif not in_code:
            yield match
