"""Tune: labelled questions, graded once, and the thresholds that follow from them."""

import streamlit as st

from crag_core.errors import CragError
from ui import lab, router, shown, state
from ui.access import Right
from ui.render_advice import draw_advice, draw_objective
from ui.render_figures import draw_figures
from ui.render_grading import draw_ended, draw_grading
from ui.render_preset import draw_kept, draw_preset
from ui.render_refusal import is_allowed
from ui.render_sets import draw_set, draw_sources
from ui.running import draw_warming
from ui.text import counted, plain


def draw_questions(busy: bool) -> None:
    labelled = lab.labelled()
    if labelled is None:
        draw_sources(False, busy)
        return
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader(f"{plain(labelled.name)}: {counted(len(labelled.questions), 'question')}", anchor=False)
            with st.popover("Other questions", icon=":material/playlist_add:", type="tertiary", disabled=busy):
                draw_sources(True, busy)
        draw_set(labelled, busy)


@st.fragment(key=shown.ADVICE)
def draw_choosing(seen: lab.Seen) -> None:
    st.header("What the best thresholds are", anchor=False)
    objective, confidence = draw_objective()
    found = draw_advice(seen, objective, confidence)
    st.header("Keep them", anchor=False)
    draw_preset(seen, objective, confidence, found)


router.enter("pages/tune.py")
st.title("Tune thresholds", anchor=False)
draw_warming()
is_allowed(Right.TUNE)
if problem := state.take_report():
    st.error(plain(problem), icon=":material/error:")
ended = lab.take_ended()
draw_questions(busy=lab.grading() is not None)
if ended is not None:
    draw_ended(ended)
try:
    seen = lab.seen()
    if seen is not None:
        draw_grading(seen)
    if seen is not None and seen.graded:
        shown.mark_drawn(shown.FIGURES)
        st.header("What these thresholds do", anchor=False)
        draw_figures(seen)
        shown.mark_drawn(shown.ADVICE)
        draw_choosing(seen)
    draw_kept()
except CragError as error:
    st.error(plain(error.message), icon=":material/error:")
    st.caption(plain(error.hint))
