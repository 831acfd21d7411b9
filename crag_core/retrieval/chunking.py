"""Pages into LlamaIndex nodes: split at sentences and lines, numbered, labelled with where they come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from crag_core.llama_import import import_llama_index
from crag_core.retrieval.sections import find_sections

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

    from crag_core.retrieval.readers import Page

Tokenize = Callable[[str], Sequence[Any]]
"""Counts by its length: the tokens of a text."""

# No database keeps these as text.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# In these a line that starts with "#" is no heading.
_UNHEADED = (".txt", ".csv", ".pdf")
# Where a sentence that is too long on its own may be cut. Unlike LlamaIndex's, it loses no character and no decimals.
CLAUSE = r"(?s).+?(?:[,.;:!?](?=\s)|[。．！？、，；]|\Z)"


@dataclass(frozen=True)
class Cut:
    """How long passages are, see `Recipe`, in tokens of `tokenize`; None: LlamaIndex's own count."""

    tokens: int = 220
    overlap: int = 30
    tokenize: Tokenize | None = None


USUAL = Cut()


@dataclass(frozen=True)
class Source:
    """What every passage of a document remembers of it. `indexed_at` is an ISO time in UTC."""

    document_id: str
    name: str
    pages: int
    characters: int
    indexed_at: str


def split_pages(pages: Sequence[Page], source: Source, cut: Cut = USUAL) -> list[TextNode]:
    """Nodes in reading order, without embeddings; a passage never crosses a page.

    Ids are "<document id>-<ordinal>", so the same document cut in the same way always gives the same ids.
    """
    import_llama_index()
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode

    splitter = SentenceSplitter(
        chunk_size=cut.tokens,
        chunk_overlap=cut.overlap,
        tokenizer=cut.tokenize,
        paragraph_separator="\n\n",
        chunking_tokenizer_fn=split_lines,
        secondary_chunking_regex=CLAUSE,
        include_prev_next_rel=False,
    )
    documents = [Document(text=_UNSTORABLE.sub("�", page.text), id_=str(n)) for n, page in enumerate(pages)]
    pieces = IngestionPipeline(transformations=[splitter], disable_cache=True).run(documents=documents)
    is_headed = PurePath(source.name).suffix.lower() not in _UNHEADED
    by_page: dict[str | None, list[str]] = {document.id_: [] for document in documents}
    for piece in pieces:
        by_page[piece.ref_doc_id].append(piece.get_content())
    nodes: list[TextNode] = []
    for page, texts in zip(pages, by_page.values(), strict=True):
        sections = find_sections(page.text, texts) if is_headed else [""] * len(texts)
        for text, section in zip(texts, sections, strict=True):
            label = _label(source, page.number, len(nodes), section)
            nodes.append(
                TextNode(
                    id_=f"{source.document_id}-{len(nodes)}",
                    text=text,
                    metadata=label,
                    # File name and page are for people; in the vector they would make all passages of a file alike.
                    excluded_embed_metadata_keys=list(label),
                    excluded_llm_metadata_keys=list(label),
                    relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source.document_id)},
                )
            )
    return nodes


def split_lines(text: str) -> list[str]:
    """Sentences, none of which crosses a line: a list item or a table row has no full stop to end it."""
    import_llama_index()
    from llama_index.core.node_parser.text.utils import split_by_sentence_tokenizer

    split_sentences = split_by_sentence_tokenizer()
    pieces: list[str] = []
    for line in text.splitlines(keepends=True):
        pieces += split_sentences(line) or [line]
    return pieces


def _label(source: Source, page: int | None, ordinal: int, section: str) -> dict[str, str | int]:
    """The keys and types of the table's metadata column, but for the section, which has one of its own.

    `file_name` and `page_label` are LlamaIndex's own words.
    """
    return {
        "file_name": source.name,
        "page_label": "" if page is None else str(page),
        "ordinal": ordinal,
        "section": section,
        "pages": source.pages,
        "characters": source.characters,
        "indexed_at": source.indexed_at,
    }
