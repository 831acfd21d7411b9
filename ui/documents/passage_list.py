"""The chunks of one document, paged and searchable."""

from __future__ import annotations

import streamlit as st

from crag_core.base.documents import Document
from crag_core.base.protocols import DocumentStore
from crag_core.base.text.display import counted
from crag_core.base.text.words import fold
from ui.text import paragraphs, plain

_AT_ONCE = 20


@st.fragment
def draw_passage_list(store: DocumentStore, document: Document) -> None:
    passages = store.passages_of(document.id)
    st.subheader(f"Chunks of {plain(document.name)}", anchor=False)
    wanted = ""
    if len(passages) > _AT_ONCE:
        wanted = st.text_input(
            "Find in these chunks", key=f"passages_find_{document.id}", placeholder="words", icon=":material/search:"
        )
    folded = fold(wanted or "").strip()
    found = [passage for passage in passages if folded in fold(passage.text)] if folded else list(passages)
    if folded:
        st.caption(f"{counted(len(found), 'chunk')} of {len(passages)} with these words.")
    pages = max(-(-len(found) // _AT_ONCE), 1)
    page = st.pagination(pages, key=f"passages_page_{document.id}_{folded}") if pages > 1 else 1
    for passage in found[(page - 1) * _AT_ONCE : page * _AT_ONCE]:
        with st.container(border=True):
            places = [f"Chunk {passage.ordinal + 1}", f"page {passage.page}" if passage.page else ""]
            st.caption(" · ".join(filter(None, [*places, plain(passage.section)])))
            st.markdown(paragraphs(passage.text))
