"""Compare: one question, or a labelled set, under several configurations side by side."""

import streamlit as st

from crag_core.errors import CragError
from ui import router, state, versus
from ui.render_grading import draw_ended
from ui.render_measures import draw_running, draw_set
from ui.render_versus import draw_comparing, draw_configurations, draw_question, draw_runs
from ui.running import draw_warming
from ui.text import plain

QUESTION, SET = "One question", "A labelled set"


router.enter("pages/compare.py")
st.title("Compare configurations", anchor=False)
draw_warming()
versus.take_question()
if ended := versus.take_running():
    draw_ended(ended, "run", "run", "It broke off")
if problem := state.take_report():
    st.error(plain(problem), icon=":material/error:")
busy = versus.comparing() is not None or versus.running() is not None
draw_configurations(busy)
what = st.segmented_control("What is compared", [QUESTION, SET], default=QUESTION, required=True, key="versus_what")
try:
    if what == SET:
        draw_set()
    else:
        draw_question(busy)
    if versus.comparing() is not None:
        draw_comparing()
    elif what == QUESTION and versus.traces():
        draw_runs(versus.traces())
    if what == QUESTION and versus.running() is not None:
        draw_running()
except CragError as error:
    st.error(plain(error.message), icon=":material/error:")
    st.caption(plain(error.hint))
