"""What the Ask page shows before the first question: what the three actions mean, examples, and recorded runs."""

from __future__ import annotations

import streamlit as st

from ui.ask.question import draw_suggestions
from ui.session import app_state, current_run, run_job
from ui.session.demos import Demo, demos
from ui.text import plain


def draw_welcome() -> None:
    st.markdown(
        "Corrective RAG grades the retrieved evidence before it is used. Ask a question and see the score of every "
        "chunk, the sentences that are kept and struck out, and why the question went where it went."
    )
    st.markdown(
        ":green[:material/check_circle: **Correct**] the evidence holds up: it is refined to the sentences that matter"
        "  \n:orange[:material/help: **Ambiguous**] on the subject, but maybe not enough: refined, and the web asked "
        "too  \n:red[:material/cancel: **Incorrect**] it does not fit: it is set aside, and the web is asked instead"
    )
    draw_suggestions()
    st.subheader("Or watch a recorded run", anchor=False)
    st.caption(
        "Recorded on the sample documents: nothing is retrieved, graded or asked now. "
        "The web pages in them were written for the recording."
    )
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
