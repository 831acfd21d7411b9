"""History: every run that is kept; find one, open it as it was taken, compare two, delete, export, import."""

import streamlit as st

from ui.history import history_state
from ui.history.bulk_actions import draw_actions, draw_import, draw_imported
from ui.history.run_detail import draw_selected
from ui.history.run_list import draw_filter, draw_head, draw_table, retention
from ui.session import access, app_state
from ui.shell import page
from ui.shell.page import draw_report, errors_drawn
from ui.shell.text import plain


def draw_runs() -> None:
    found = history_state.listed(draw_filter(history_state.policies()))
    if not found.of:
        draw_nothing()
        return
    draw_head(found, app_state.workbench().history.days)
    actions = st.container(horizontal=True, vertical_alignment="center", gap="xsmall")
    if not found.count:
        st.info("No run matches this filter.", icon=":material/search_off:")
    selected = draw_table(found) if found.runs else ()
    with actions:  # above the table, which is long, but for what is selected in it
        draw_actions(found, selected)
    if found.runs:
        draw_selected(selected)


def draw_nothing() -> None:
    whose = "" if history_state.scope() is None else f" {access.refusal('see the runs of others')}"
    st.info(
        plain(f"No runs yet. Ask a question, or import records.{whose}"),
        icon=":material/history:",
    )
    st.caption(plain(retention(app_state.workbench().history.days)))
    draw_import()


page.enter("pages/history.py")
st.title("History", anchor=False)
draw_report()
draw_imported()
if not app_state.workbench().history.is_on:
    st.info(
        "Runs are not kept: CRAG\\_HISTORY is off. Set CRAG\\_HISTORY=disk, or a database URL, and restart.",
        icon=":material/history_toggle_off:",
    )
else:
    with errors_drawn("The history cannot be read"):
        draw_runs()
