"""The indexed documents, what became of the files just added, and the passages of one document."""

from __future__ import annotations

import streamlit as st

from crag_core.retrieval.store import Ingested, IngestOutcome, PassageStore
from ui.text import counted, paragraphs, plain

_ICONS = {
    IngestOutcome.INDEXED: ":green[:material/check_circle:]",
    IngestOutcome.REPLACED: ":green[:material/published_with_changes:]",
    IngestOutcome.ALREADY: ":gray[:material/done_all:]",
    IngestOutcome.REFUSED: ":red[:material/cancel:]",
}


def draw_outcomes(outcomes: tuple[Ingested, ...]) -> None:
    """One line a file: indexed, replaced, already there, or refused with the reason and what to do."""
    if not outcomes:
        return
    with st.container(border=True):
        for one in outcomes:
            count = f", {counted(one.passages, 'passage')}" if one.passages else ""
            told = (
                plain(f"{one.message} {one.hint}") if one.outcome is IngestOutcome.REFUSED else f"{one.outcome}{count}"
            )
            st.markdown(f"{_ICONS[one.outcome]} **{plain(one.name)}** {told}")


def draw_documents(store: PassageStore) -> None:
    documents = store.documents()
    if not documents:
        st.info("No documents yet. Add some above, then ask on the Ask page.", icon=":material/folder_off:")
        return
    total = sum(document.passages for document in documents)
    st.subheader(f"{counted(len(documents), 'document')}, {counted(total, 'passage')}", anchor=False)
    rows = [
        {
            "name": document.name,
            "pages": str(document.pages or "–"),
            "passages": document.passages,
            "characters": document.characters,
            "indexed": document.indexed_at,
        }
        for document in documents
    ]
    chosen = st.dataframe(
        rows,
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        key="documents_table",
        alt="Indexed documents with pages, passages, characters and time",
        column_config={"indexed": st.column_config.DatetimeColumn("indexed", format="YYYY-MM-DD HH:mm")},
    )
    selected = [documents[row] for row in chosen.selection.rows if row < len(documents)]
    if not selected:
        st.caption("Select a row to read its passages or to remove it from the index.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        names = plain(selected[0].name) if len(selected) == 1 else counted(len(selected), "document")
        if st.button(f"Remove {names} from the index", icon=":material/delete:", key="documents_remove"):
            for document in selected:
                store.delete(document.id)
            st.rerun()
        st.caption("The files themselves are not touched.")
    for passage in store.passages_of(selected[0].id):
        with st.container(border=True):
            page = f" · page {passage.page}" if passage.page else ""
            st.caption(f"Passage {passage.ordinal + 1}{page}")
            st.markdown(paragraphs(passage.text))
