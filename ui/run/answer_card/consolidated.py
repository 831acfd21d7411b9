"""The model's own knowledge, as a source of its own, and what was made of it and the evidence."""

from __future__ import annotations

import streamlit as st

from crag_core.view.answer.consolidated import KNOWS_NOTHING, NO_EVIDENCE, Group, consolidated_view
from crag_core.view.run_view import RunView
from ui.shell.text import plain


def draw_consolidated(view: RunView) -> None:
    """Beside the answer, and told from its evidence; nothing under a policy that consolidates nothing."""
    found = consolidated_view(view)
    if found is None:
        return
    with st.container(border=True, gap="small", key=f"consolidated_{view.trace.id}"):
        st.markdown(f"#### :violet-badge[:material/psychology: {found.title}]", width="content")
        if found.asked:
            st.markdown("\n".join(f"- {plain(text)}" for text in found.own) or f":gray[{KNOWS_NOTHING}]")
            if found.own:
                st.caption(NO_EVIDENCE)
        st.markdown("**Put together with the evidence**" if found.asked else "**Put together**")
        st.markdown("\n".join(map(_line, found.groups)) or ":gray[Nothing of it bears on the question.]")
        for line in found.conflicts:
            st.caption(f":orange[:material/compare_arrows: {plain(line)}]")
        for text in found.from_memory_alone:
            st.caption(f":orange[:material/psychology: Only the model's own knowledge says: {plain(text)}]")


def _line(group: Group) -> str:
    links = " ".join(f"[\\[{one.number}\\]](#{one.label.anchor})" for one in group.cited)
    memory = "the model's memory" if group.in_memory else ""
    return f"- {plain(group.text)} :gray[· {' and '.join(filter(None, (links, memory)))}]"
