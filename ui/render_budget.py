"""What a question will cost in model calls, before it is asked."""

from __future__ import annotations

import streamlit as st

from crag_core.build import Choice
from ui.offers import calls_by_action
from ui.render_verdict import COLOURS
from ui.text import plain


def draw_budget(choice: Choice) -> None:
    calls = calls_by_action(choice)
    if not any(cost.most for cost in calls.values()):
        st.caption(":material/receipt: No model call on any route.")
        return
    told = " · ".join(
        f":{COLOURS[action]}[{plain(choice.policy.route(action).label)}] {cost}" for action, cost in calls.items()
    )
    st.caption(
        f":material/receipt: Model calls by route: {told}",
        help="If every reply can be read; one that cannot is asked for once more. Grades from the cache cost nothing.",
    )
