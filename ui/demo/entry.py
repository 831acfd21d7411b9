"""A button that shows a run as a story, for the pages that have a run."""

from __future__ import annotations

import streamlit as st

from crag_core.trace.trace import Trace
from ui.session.demos import open_story


def draw_entry(trace: Trace) -> None:
    if st.button("Show as a story", icon=":material/slideshow:", type="tertiary", key=f"story_{trace.id}"):
        open_story(trace.id)
