"""Policies: what each of them makes of one and the same set of scores, of the last run or made up by hand."""

import streamlit as st

from crag_core.base.text.display import counted
from ui.policies import draw_made_up, draw_verdicts, judge_run, judge_scores
from ui.session import app_state
from ui.shell import page
from ui.text import plain

RUN, HAND = "The last run", "Scores by hand"

page.enter("pages/policies.py")
st.title("One set of scores, every policy", anchor=False)
trace = app_state.trace()
source = st.segmented_control(
    "Scores from", [RUN, HAND], default=RUN if trace else HAND, required=True, key="policies_source"
)
if source == HAND:
    st.markdown("Change the scores, and see where the policies part. Each is taken as its description has it.")
    draw_verdicts(judge_scores(*draw_made_up(), app_state.policies().values()))
elif trace is None or trace.passages is None:
    st.info("Ask something on the Ask page first, or make up scores by hand.", icon=":material/info:")
else:
    st.markdown(
        f"“{plain(trace.question)}” · {counted(len(trace.all_passages), 'chunk')}, graded by "
        f"{plain(trace.settings.evaluator.title.lower())}. Each policy starts with the thresholds that suit it."
    )
    draw_verdicts(judge_run(trace, app_state.policies().values()))
