"""Tune: labelled questions, graded once, and the thresholds that follow from them."""

import streamlit as st

from crag_core.base.text.display import counted
from ui.run.job_progress import draw_warming
from ui.session import current_run, labelled_sets
from ui.session.fragments import fragment
from ui.shell import page
from ui.shell.page import draw_report, errors_drawn, is_allowed
from ui.shell.text import plain
from ui.tune import labelling, tune_state
from ui.tune.figures import draw_figures
from ui.tune.grading_progress import draw_ended, draw_grading
from ui.tune.labelling import draw_labelling, draw_start
from ui.tune.question_sets import draw_set, draw_sources
from ui.tune.recommendation import draw_compared, draw_map, draw_objective, draw_recommended
from ui.tune.save_preset import draw_kept, draw_preset


def draw_questions(busy: bool) -> None:
    labelled = labelled_sets.in_use()
    if labelled is None:
        draw_sources(False, busy)
        with st.expander("Label the 20 questions nearest to your thresholds", icon=":material/label:"):
            draw_start(busy)
        return
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader(f"{plain(labelled.name)}: {counted(len(labelled.questions), 'question')}", anchor=False)
            with st.container(horizontal=True, width="content"):
                with st.popover("Label more", icon=":material/label:", type="tertiary", disabled=busy):
                    draw_start(busy)
                with st.popover("Other questions", icon=":material/playlist_add:", type="tertiary", disabled=busy):
                    draw_sources(True, busy)
        draw_set(labelled, busy)


@fragment(current_run.ADVICE)
def draw_choosing(seen: tune_state.Seen) -> None:
    st.header("Better thresholds", anchor=False)
    objective, confidence = draw_objective(seen)
    found = tune_state.advice(seen, objective, confidence)
    with st.container(border=True, key="tune_recommended"):
        draw_recommended(found, objective)
        draw_preset(seen, objective, confidence, found)
    with st.container(key="tune_map"):
        draw_map(seen, objective, found)
    draw_compared(found)


page.enter("pages/tune.py")
st.title("Tune thresholds", anchor=False)
draw_warming()
is_allowed("grade labelled sets and keep presets")
draw_report()
ended = tune_state.grading().take_ended()
with errors_drawn():
    draw_labelling()  # which takes what has ended
busy = tune_state.grading().job is not None or labelling.GRADING.job is not None
draw_questions(busy)
if ended is not None:
    draw_ended(ended)
with errors_drawn():
    seen = tune_state.seen()
    if seen is not None:
        draw_grading(seen)
    if seen is not None and seen.graded:
        st.header("Your thresholds", anchor=False)
        draw_figures(seen)
        draw_choosing(seen)
    draw_kept()
