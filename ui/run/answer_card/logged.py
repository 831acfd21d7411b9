"""The answer that another system's log has for the question of a run, and what is known to be right."""

from __future__ import annotations

import streamlit as st

from crag_core.base.types.passages import Logged
from ui.shell.text import paragraphs, plain


def draw_logged(logged: Logged) -> None:
    """Beside ours, and told from it; nothing where the log has neither answer nor right answer."""
    if not logged.answer and not logged.references:
        return
    with st.container(border=True, gap="small", key="answer_logged"):
        st.markdown("#### :gray-badge[:material/rule: Answer in the log]", width="content")
        st.markdown(paragraphs(logged.answer) if logged.answer else ":gray[The log has no answer.]")
        if logged.references:
            st.caption(f"Right answer: {plain(' | '.join(logged.references))}")
        if logged.log:
            st.caption(f":material/folder_open: {plain(f'Log {logged.log}, record {logged.record}')}")
