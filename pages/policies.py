"""Policies: what each of them makes of one and the same recorded run, the last one or a demo."""

import streamlit as st

from crag_core.base.text.display import counted
from ui.policies import draw_table, judge_run
from ui.session import app_state, current_run
from ui.session.demos import demos
from ui.shell import page
from ui.shell.text import plain

page.enter("pages/policies.py")
st.title("One run, every policy", anchor=False)
last = current_run.trace()
runs = {"Last run": last} if last and last.passages is not None else {}
runs |= {demo.title: demo.trace for demo in demos()}
key = f"policies_run_{last.id if last else ''}"  # another run is looked at first
trace = runs[st.pills("Scores of", list(runs), default=next(iter(runs)), required=True, key=key)]
st.markdown(
    f"**{plain(trace.question)}** :gray[{counted(len(trace.all_passages), 'chunk')}, "
    f"{plain(trace.settings.evaluator.title.lower())}]"
)
draw_table(judge_run(trace, app_state.policies().values()))
