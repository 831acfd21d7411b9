"""Plain text and Markdown. Both keep their own marks: a Markdown heading still starts with "#"."""

from __future__ import annotations

from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.shared.decoding import decode_text
from crag_core.retrieval.readers.shared.markdown_text import join_lines, normalise_text


def read_text(content: bytes, name: str) -> tuple[Page, ...]:
    return (Page(join_lines(normalise_text(decode_text(content)))),)


# A single line break means a space in Markdown too, and `join_lines` respects its items, tables and fences.
read_markdown = read_text
