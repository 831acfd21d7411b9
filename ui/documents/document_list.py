"""The list of documents with their states, the results of the last upload, and the chunks of one document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from crag_core.app.workbench import PassageStore
from crag_core.base.documents import MAIN, Document, Ingested, IngestOutcome, State
from crag_core.base.text.display import clean, counted
from crag_core.base.text.words import fold
from ui.session import access, app_state, startup
from ui.session.fragments import fragment
from ui.shell.text import first_lines, paragraphs, plain

_ICONS = {
    IngestOutcome.INDEXED: ":green[:material/check_circle:]",
    IngestOutcome.REPLACED: ":green[:material/published_with_changes:]",
    IngestOutcome.ALREADY: ":gray[:material/done_all:]",
    IngestOutcome.REFUSED: ":red[:material/cancel:]",
    IngestOutcome.LEFT_OUT: ":orange[:material/stop_circle:]",
}
_TROUBLES = (IngestOutcome.REFUSED, IngestOutcome.LEFT_OUT)
_SIGNS = {State.INDEXED: "✓", State.REFUSED: "✗"}
_SHOWN_AT_ONCE = 8
_MOST_LINES = 200
_ALL = "All collections"


def draw_outcomes(outcomes: Sequence[Ingested]) -> None:
    """Results of an upload: counts, every refusal with its reason, the others in a fold."""
    if not outcomes:
        return
    troubles = [one for one in outcomes if one.outcome in _TROUBLES or one.left_out]
    others = [one for one in outcomes if one not in troubles]
    with st.container(border=True):
        if len(outcomes) > _SHOWN_AT_ONCE:
            counts = Counter(one.outcome for one in outcomes)
            summary = (f"{_ICONS[kind]} **{counts[kind]}** {kind}" for kind in IngestOutcome if counts[kind])
            st.markdown(" · ".join(summary))
            if troubles:
                _draw_lines(troubles)
            if others:
                with st.expander(f"The other {counted(len(others), 'file')}"):
                    _draw_lines(others)
        else:
            _draw_lines(outcomes)
        if any(one.document_id for one in outcomes) and st.button(
            "Ask about these", on_click=_search_where_added, icon=":material/forum:", type="primary"
        ):
            st.switch_page("pages/ask.py", query_params={})  # else the sidebar's would be in the way


def _search_where_added() -> None:
    """For a callback: the next question is asked of the collection of the last upload."""
    added = st.session_state.get("documents_collection") or MAIN
    if len(app_state.collections()) > 1 and added in app_state.collections():
        st.session_state["collection"] = added


def _draw_lines(outcomes: Sequence[Ingested]) -> None:
    st.markdown(first_lines([_line(one) for one in outcomes], _MOST_LINES))


def _line(one: Ingested) -> str:
    told = " ".join(filter(None, (one.message.removeprefix(f"{one.name}: "), one.hint, one.left_out)))
    return f"{_ICONS[one.outcome]} **{plain(one.name)}** {plain(told)}"


def draw_documents(store: PassageStore) -> Document | None:
    """The list, with what can be done to those selected in it; gives the first whole one of them."""
    everything = store.listing()
    if not everything:
        if startup.warm_up().is_running:
            return None  # the samples may be on their way
        more = " Add some above, then ask about them on the Ask page." if access.is_administrator() else ""
        st.info(f"No documents yet.{more}", icon=":material/folder_off:")
        return None
    _draw_head(everything)
    rows = _chosen_rows(everything)
    picked = st.dataframe(
        [_cells(row) for row in rows],
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        key="documents_table",
        placeholder="–",
        alt="Documents with state, pages, chunks, size, version, collection and time",
        column_config={
            "name": st.column_config.TextColumn(width="medium"),
            "pages": st.column_config.NumberColumn(help="Only for formats with pages"),
            "size": st.column_config.NumberColumn(format="bytes"),
            "since": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm", help="When it was indexed or refused"),
            "version": st.column_config.NumberColumn(help="Counts the uploads of this name with new content"),
        },
    )
    selected = [rows[at] for at in picked.selection.rows if at < len(rows)]
    if not selected:
        more = ", move or remove it" if access.is_administrator() else ""
        st.caption(f"Select a row to read its chunks{more}.")
        return None
    if access.is_administrator():
        _draw_actions(store, selected)
    for row in selected:
        if row.message and row.is_whole:
            st.warning(f"{plain(row.name)}: {plain(row.message)}", icon=":material/visibility_off:")
        elif row.message:
            st.error(plain(f"{row.message} {row.hint}"), icon=":material/cancel:")
    return next((row for row in selected if row.is_whole), None)


def collections_of(rows: Sequence[Document]) -> list[str]:
    return sorted({row.collection for row in rows}, key=str.casefold)


def _draw_head(rows: Sequence[Document]) -> None:
    whole = [row for row in rows if row.is_whole]
    summary = f"{counted(len(whole), 'document')}, {counted(sum(row.passages for row in whole), 'chunk')}"
    st.subheader(summary, anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = collections_of(rows)
        if len(names) > 1:
            st.selectbox("Collection", [_ALL, *names], key="documents_filter", format_func=clean, width=260)
        if len(rows) > _SHOWN_AT_ONCE:
            st.text_input(
                "Find", key="documents_find", placeholder="part of a name", icon=":material/search:", width=260
            )


def _chosen_rows(rows: Sequence[Document]) -> list[Document]:
    collection = st.session_state.get("documents_filter") or _ALL
    part = (st.session_state.get("documents_find") or "").strip().casefold()
    return [row for row in rows if collection in (_ALL, row.collection) and part in row.name.casefold()]


def _cells(row: Document) -> dict[str, object]:
    state = f"{_SIGNS.get(State(row.state), '…')} {row.state}"
    return {
        "name": clean(row.name),
        "state": f"{state}, first chunks searchable" if row.is_partial else state,
        "pages": row.pages or None,
        "chunks": row.passages or None,
        "size": row.size or None,
        "version": row.version,
        "collection": clean(row.collection),
        "since": row.time,
    }


def _draw_actions(store: PassageStore, selected: Sequence[Document]) -> None:
    names = plain(selected[0].name) if len(selected) == 1 else counted(len(selected), "document")
    ids = tuple(row.id for row in selected)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Remove {names}", icon=":material/delete:", key="documents_remove", on_click=_remove,
            args=(store, ids),
        )  # fmt: skip
        with st.popover("Move to collection", icon=":material/drive_file_move:"):
            known = collections_of(store.listing())
            target = st.selectbox(
                "Collection", known, index=None, accept_new_options=True, key="documents_target", format_func=clean,
                placeholder="choose or type a new name",
            )  # fmt: skip
            st.button("Move", key="documents_move", on_click=_move, args=(store, ids, target), disabled=not target)
        st.caption("Your own files stay as they are.")


@app_state.reporting()
def _remove(store: PassageStore, ids: tuple[str, ...]) -> None:
    access.require_administrator()
    store.delete_all(ids)


@app_state.reporting()
def _move(store: PassageStore, ids: tuple[str, ...], target: str) -> None:
    access.require_administrator()
    store.move(ids, target)


# --- the chunks of a document -----------------------------------------------------------------------------------------


_AT_ONCE = 20


@fragment()
def draw_passage_list(store: PassageStore, document: Document) -> None:
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
        st.caption(f"{counted(len(found), 'chunk')} of {len(passages)} match.")
    pages = max(-(-len(found) // _AT_ONCE), 1)
    page = st.pagination(pages, key=f"passages_page_{document.id}_{folded}") if pages > 1 else 1
    for passage in found[(page - 1) * _AT_ONCE : page * _AT_ONCE]:
        with st.container(border=True):
            places = [f"Chunk {passage.ordinal + 1}", f"page {passage.page}" if passage.page else ""]
            st.caption(" · ".join(filter(None, [*places, plain(passage.section)])))
            st.markdown(paragraphs(passage.text))
