"""The earlier runs of this session."""

from __future__ import annotations

import streamlit as st

from crag_core.base.text.display import shortened
from crag_core.trace.trace import Trace
from ui.run.verdict import COLOURS, ICONS
from ui.session import current_run
from ui.text import plain


def draw_earlier(busy: bool) -> None:
    runs = current_run.earlier()
    if not runs:
        return
    with st.popover(f"Earlier ({len(runs)})", icon=":material/history:", type="tertiary", disabled=busy):
        st.caption("Runs of this session, newest first. Each opens as it was taken.")
        for trace in runs:
            st.button(
                _named(trace), f"earlier_{trace.id}", on_click=current_run.open_run, args=(trace,), type="tertiary"
            )


def _named(trace: Trace) -> str:
    question, settings = plain(shortened(trace.question, 70)), trace.settings
    if trace.decision is None:
        return f":gray[:material/pending:] {question}"
    action = trace.decision.action
    return f":{COLOURS[action]}[:material/{ICONS[action]}:] {question} :gray[· {plain(settings.policy.title)}]"
