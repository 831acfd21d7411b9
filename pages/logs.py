"""Logs: the log of another RAG system, opened as a set, and the stage at which each of its questions went wrong."""

import streamlit as st

from crag_core.app.retrieval_logs import Imported, summary
from crag_core.base.text.display import counted
from ui.logs import log_state
from ui.logs.import_form import draw_choosing, draw_preview
from ui.logs.log_state import LogsPage
from ui.logs.open_log import draw_grading, draw_next_steps
from ui.logs.stage_results import draw_findings, draw_policies
from ui.run.job_progress import draw_warming
from ui.session import access
from ui.session.keys import kept, take
from ui.shell import page
from ui.shell.page import draw_report, errors_drawn, is_allowed
from ui.shell.text import plain
from ui.tune.grading_progress import draw_ended


def draw_log(found: Imported) -> None:
    log = found.log
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(plain(log.name), anchor=False, width="content")
        with st.container(horizontal=True, width="content"):
            st.button("Another log", on_click=log_state.open_log, args=("",), icon=":material/close:", type="tertiary")
            if access.is_administrator():
                with st.popover("Delete", type="tertiary", icon=":material/delete:"):
                    st.markdown(f"Delete **{plain(log.name)}**, {counted(len(log.records), 'record')}, with its set?")
                    st.button("Delete it", on_click=log_state.delete, args=(log.name,), key="log_delete")
    st.caption(plain(f"{summary(found)}."))
    draw_next_steps(found)
    if (ended := log_state.grading(log).take_ended()) is not None:
        draw_ended(ended)
    judged = log_state.judged(log)
    draw_grading(log, len(judged))
    if judged:
        draw_findings(log, judged)
        with st.expander("All policies side by side", key="log_policies", on_change="rerun") as fold:
            if fold.open:
                draw_policies(judged)


page.enter("pages/logs.py")
if target := take("page"):
    st.switch_page(target, query_params={})  # else those that the sidebar is bound to would be in the way
st.title("Open retrieval log", anchor=False)
draw_warming()
is_allowed("grade labelled sets and keep presets")
draw_report()
with errors_drawn():
    looked, found = kept(LogsPage).looked, log_state.current()
    if looked is not None:
        draw_preview(looked)
    elif found is not None:
        draw_log(found)
    else:
        draw_choosing()
