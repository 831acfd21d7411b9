"""Compare: one question, or a labelled set, under several configurations side by side."""

import streamlit as st

from ui.compare import compare_state
from ui.compare.compare_page import draw_comparing, draw_configurations, draw_question, draw_runs
from ui.compare.compare_state import ComparePage
from ui.compare.measures_table import draw_running, draw_set
from ui.run.job_progress import draw_warming
from ui.session.keys import kept
from ui.shell import page
from ui.shell.page import draw_report, errors_drawn
from ui.tune.grading_progress import draw_ended

QUESTION, SET = "One question", "Labelled set"


page.enter("pages/compare.py")
st.title("Compare configurations", anchor=False)
draw_warming()
compare_state.take_question()
if ended := compare_state.running().take_ended():
    draw_ended(ended, "run", "run", "The run broke off")
draw_report()
busy = compare_state.comparing() is not None or compare_state.running().job is not None
draw_configurations(busy)
what = st.segmented_control("Compare on", [QUESTION, SET], default=QUESTION, required=True, key="versus_what")
with errors_drawn():
    if what == SET:
        draw_set()
    else:
        draw_question(busy)
    if compare_state.comparing() is not None:
        draw_comparing()
    elif what == QUESTION and (traces := kept(ComparePage).traces):
        draw_runs(traces)
    if what == QUESTION and compare_state.running().job is not None:
        draw_running()
