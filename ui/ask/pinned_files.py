"""Chooses whole files as evidence."""

from __future__ import annotations

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import counted
from ui.session import app_state


def draw_pins(busy: bool) -> None:
    try:
        names = {document.id: document.name for document in app_state.workbench().store.documents()}
    except CragError:  # the Documents page and the sidebar tell
        return
    if gone := [id_ for id_ in st.session_state.get("ask_pinned", []) if id_ not in names]:
        st.session_state["ask_pinned"] = [id_ for id_ in st.session_state["ask_pinned"] if id_ in names]
        app_state.report(f"{counted(len(gone), 'pinned file')} is no longer indexed and was unpinned.")
    chosen = [id_ for id_ in st.session_state.get("ask_pinned", []) if id_ in names]
    label = f"{counted(len(chosen), 'pinned file')}" if chosen else "Pin files"
    with st.popover(label, icon=":material/push_pin:", type="secondary" if chosen else "tertiary", disabled=busy):
        st.multiselect(
            "Read these files whole",
            list(names),
            format_func=lambda id_: names.get(id_, "a file that is gone"),
            key="ask_pinned",
            persist_state="session",
            help="They become the evidence instead of retrieved chunks. Short ones: a model reads only so much.",
        )
        st.toggle("Search the other documents too", key="ask_search_too", persist_state="session")
