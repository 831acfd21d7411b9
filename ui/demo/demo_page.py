"""The Demo page: which stories there are, and one of them on the whole window."""

from __future__ import annotations

import re

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.report import story as report
from ui import PARTS
from ui.demo import stories
from ui.demo.stories import Staged
from ui.run.share import RUN_ID
from ui.run.verdict import headline
from ui.session import app_state, current_run
from ui.session.demos import Demo, demo_of, demos, open_story
from ui.shell.page import draw_report, errors_drawn
from ui.shell.text import plain

_STORY = st.components.v2.component(
    "crag_story", html='<div class="story"></div>', css=report.style(), js=report.script()
)


def draw() -> None:
    """The run of the address as a story; the list where it names none, or none that is here."""
    run_id = st.query_params.get("run", "")
    if run_id:
        with errors_drawn("This run cannot be read"):
            if staged := stories.find(run_id):
                step = st.query_params.get("step", "")  # counted from 1
                draw_story(staged, max(int(step) - 1, 0) if re.fullmatch("[0-9]{1,3}", step) else 0)
                return
            app_state.report(f"The run {run_id[:64]} of this link is not kept here. Ask its question again.")
    draw_list()


# --- the list ---------------------------------------------------------------------------------------------------------


def draw_list() -> None:
    st.title("Demo", anchor=False)
    draw_report()
    st.markdown("Recorded runs, told step by step to people who know neither RAG nor CRAG.")
    with st.grid(3, min_column_width=280, gap="small", key="stories") as grid:
        for demo in demos():
            with grid.cell(), st.container(border=True, height="stretch", gap="xsmall"):
                st.markdown(f"**{plain(demo.title)}**  \n{plain(demo.trace.question)}")
                if demo.trace.decision:
                    st.caption(headline(demo.trace.decision))
                if st.button("Play", f"play_{demo.trace.id}", icon=":material/slideshow:"):
                    open_story(demo.trace.id)
    if (own := current_run.trace()) and demo_of(own.id) is None:
        st.subheader("Your last run", anchor=False)
        st.markdown(plain(own.question))
        if st.button("Show as a story", icon=":material/slideshow:", type="tertiary", key=f"story_{own.id}"):
            open_story(own.id)


# --- one story --------------------------------------------------------------------------------------------------------


def draw_story(staged: Staged, start: int) -> None:
    """`start` counts from 0."""
    st.html(PARTS / "demo.css")
    story = staged.story
    told = _STORY(
        key="story",
        data={"story": to_plain(story), "start": start, "keeps": True, "links": staged.has_link, "leaves": True},
        on_leave_change=lambda: None,
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="demo_row"):
        name = story.id if RUN_ID.fullmatch(story.id) else "run"
        st.download_button(
            "Save as one HTML file", lambda: report.render_story(story).encode("utf-8", "replace"),
            f"crag-story-{name}.html", "text/html", icon=":material/download:", type="tertiary", on_click="ignore",
        )  # fmt: skip
        if (following := _after(staged)) and st.button(
            f"Next: {plain(following.title)}", icon=":material/skip_next:", type="tertiary"
        ):
            open_story(following.trace.id)
        if not staged.is_demo:
            st.text_input(
                "Name of this story", key="story_name", placeholder="Name this story", max_chars=80, width=240,
                label_visibility="collapsed",
            )  # fmt: skip
        st.caption("Keys: → and ←, Home, End; Esc closes.")
    if told.leave and staged.is_demo:
        st.switch_page("pages/demo.py")
    elif told.leave:
        current_run.open_later(staged.trace)
        st.switch_page("pages/ask.py")


def _after(staged: Staged) -> Demo | None:
    """The demo behind this one; the first behind a run of one's own."""
    known = demos()
    at = next((at for at, demo in enumerate(known) if demo.trace.id == staged.trace.id), -1)
    return known[(at + 1) % len(known)]
