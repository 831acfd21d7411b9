"""Metrics: what the runs that were asked here come to, over time, beside the targets."""

import streamlit as st

from ui.metrics import metrics_state
from ui.metrics.metrics_page import draw_table, draw_whole
from ui.session import access, app_state
from ui.shell import page
from ui.shell.page import errors_drawn
from ui.shell.text import plain


def draw_choice() -> tuple[str, str]:
    """(period, policy or "" for all)"""
    known = metrics_state.policies()
    if st.session_state.get("metrics_policy", "") not in ("", *known):  # its last run was deleted
        del st.session_state["metrics_policy"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        period = st.segmented_control(
            "Last", list(metrics_state.PERIODS), default="7 days", required=True, key="metrics_period",
            persist_state="session",
        )  # fmt: skip
        policy = st.selectbox(
            "Policy", ["", *known], format_func=lambda name: title_of(name), key="metrics_policy", width=260,
            persist_state="session",
        )  # fmt: skip
    return period, policy


def title_of(policy: str) -> str:
    known = app_state.policies().get(policy)
    return plain(known.title if known else policy) if policy else "All policies"


page.enter("pages/metrics.py")
st.title("Metrics", anchor=False)
with errors_drawn():
    period, policy = draw_choice()
    found = metrics_state.seen(period, policy)
    if not access.is_administrator():
        st.caption("Your own runs only.")
    if found.whole:
        draw_whole(found)
        draw_table(found.parts, found.steps)
    else:
        st.info("No runs in this period. Ask a question, or choose a longer one.", icon=":material/info:")
