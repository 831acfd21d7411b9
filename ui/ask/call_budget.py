"""The cost of a question in model calls, before it is asked."""

from __future__ import annotations

import streamlit as st

from crag_core.app.workbench import Choice
from crag_core.pipeline.call_budget import JUDGING
from crag_core.trace.grounding.citation_check import WORDS
from ui.run.verdict import COLOURS
from ui.run.what_if.run_offer import calls_by_action
from ui.text import plain


def draw_budget(choice: Choice, support: str) -> None:
    """`support` is who checks the sentences of the answer."""
    calls = calls_by_action(choice)
    more = "" if support == WORDS else f", {JUDGING}"
    if not any(cost.most for cost in calls.values()):
        st.caption(f":material/receipt: No model call on any route{more}.")
        return
    message = " · ".join(
        f":{COLOURS[action]}[{plain(choice.policy.route(action).label)}] {cost}" for action, cost in calls.items()
    )
    st.caption(
        f":material/receipt: Model calls by route: {message}{more}",
        help="If every reply can be read; one that cannot is asked for once more. Grades from the cache cost nothing.",
    )
