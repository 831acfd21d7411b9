"""The recorded demos on the Ask page."""

from __future__ import annotations

import streamlit as st

from ui.session import app_state, current_run, run_job
from ui.session.recorded_demos import Demo, demos
from ui.text import plain

RECORDED = (
    "Recorded on the sample documents: nothing is retrieved, graded or asked now. "
    "The web pages in them were written for the recording."
)


def draw_demos() -> None:
    st.subheader("Or watch a recorded run", anchor=False)
    st.caption(RECORDED)
    with st.grid(3, min_column_width=260, gap="small", key="demos") as grid:
        for demo in demos():
            with grid.cell(), st.container(border=True, height="stretch", gap="xsmall"):
                st.markdown(f"**{plain(demo.title)}**  \n{plain(demo.trace.question)}")
                st.caption(plain(demo.note))
                st.button("Play", f"demo_{demo.trace.id}", on_click=_play, args=(demo,), icon=":material/play_circle:")


def _play(demo: Demo) -> None:
    current_run.leave_first()
    app_state.use_settings_of(demo.trace)
    st.session_state["ask_question"] = demo.trace.question
    run_job.play(demo.trace)
