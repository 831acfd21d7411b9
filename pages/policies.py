"""Policies: what each of them makes of one and the same set of scores, of the last run or an example."""

import streamlit as st

from crag_core.base.text.display import counted
from ui.policies.example_scores import EXAMPLES, made_up
from ui.policies.verdict_table import draw_table
from ui.policies.verdicts import judge_run, judge_scores
from ui.session import app_state, current_run
from ui.shell import page
from ui.shell.text import plain

RUN, EXAMPLE = "Last run", "Example"

page.enter("pages/policies.py")
st.title("One set of scores, every policy", anchor=False)
trace = current_run.trace()
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    source = st.segmented_control(
        "Scores from", [RUN, EXAMPLE], default=RUN if trace else EXAMPLE, required=True, key="policies_source"
    )
    example = None
    if source == EXAMPLE:
        example = st.pills("Example", list(EXAMPLES), default="Mixed", required=True, key="policies_example")
if example:
    verdicts = judge_scores(*made_up(example), app_state.policies().values())
elif trace is None or trace.passages is None:
    st.info("No run yet. Ask a question, or choose an example.", icon=":material/info:")
    verdicts = []
else:
    st.markdown(
        f"**{plain(trace.question)}** :gray[{counted(len(trace.all_passages), 'chunk')}, "
        f"{plain(trace.settings.evaluator.title.lower())}]"
    )
    verdicts = judge_run(trace, app_state.policies().values())
if verdicts:
    draw_table(verdicts)
