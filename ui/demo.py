"""The Demo page: which stories there are, and one of them on the whole window."""

from __future__ import annotations

import re
from dataclasses import dataclass

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.text.display import moment
from crag_core.evaluators.policies import suit
from crag_core.report import story as report
from crag_core.trace.trace import Trace
from crag_core.view.run_view import view_run
from crag_core.view.story.steps import Story
from crag_core.view.story.story import tell
from ui import PARTS
from ui.run import share
from ui.run.verdict import headline
from ui.session import app_state, current_run
from ui.session.demos import ABOUT, WRITTEN, Demo, demo_of, demos, open_story
from ui.shell.page import draw_report, errors_drawn
from ui.shell.text import plain

_STORY = st.components.v2.component(
    "crag_story", html='<div class="story"></div>', css=report.style(), js=report.script()
)
_LONGEST_NAME = 80  # characters


def draw() -> None:
    """The run of the address as a story; the list where it names none, or none that is here."""
    run_id = st.query_params.get("run", "")
    if run_id:
        with errors_drawn("This run cannot be read"):
            if staged := find(run_id):
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
        name = story.id if share.RUN_ID.fullmatch(story.id) else "run"
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
                "Name of this story", key="story_name", placeholder="Name this story", max_chars=_LONGEST_NAME,
                width=240, label_visibility="collapsed",
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


# --- the story of a run by its id -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Staged:
    """`has_link`: whoever has its address finds it here. `is_demo`: it came with the application."""

    story: Story
    trace: Trace
    has_link: bool
    is_demo: bool


def find(run_id: str) -> Staged | None:
    """None for a run that is not here; raises `CragError` where the history cannot be read."""
    if demo := demo_of(run_id):
        return Staged(story_of_demo(demo), demo.trace, has_link=True, is_demo=True)
    shown = current_run.trace()
    own = shown if shown and shown.id == run_id else current_run.find_earlier(run_id)
    history = app_state.workbench().history
    if own:  # the record as it is kept may be an earlier one
        return Staged(story_of(own), own, history.is_on and not history.problem, is_demo=False)
    kept = share.find(run_id) if history.is_on and share.RUN_ID.fullmatch(run_id) else None
    return Staged(story_of(kept), kept, has_link=True, is_demo=False) if kept else None


def story_of_demo(demo: Demo) -> Story:
    trace = demo.trace
    other = app_state.policies().get(demo.other)
    return tell(
        view_run(trace),
        title=demo.title,
        notes=demo.notes,
        about=ABOUT,
        move=demo.move,
        other=suit(other, trace.settings.evaluator.name) if other else None,
        web_note=WRITTEN,
        tells_ending=True,
    )


def story_of(trace: Trace) -> Story:
    title = str(st.session_state.get("story_name") or "")[:_LONGEST_NAME]
    return tell(view_run(trace), title=title, about=f"Asked on {moment(trace.created)}.")
