"""The same recorded scores under every policy, side by side."""

from __future__ import annotations

import streamlit as st

from crag_core.policy import Policy
from crag_core.reroute import Missing, reroute
from crag_core.trace import Trace
from ui.render_verdict import headline
from ui.text import plain


def draw_policies(trace: Trace, policies: dict[str, Policy]) -> None:
    """Each policy with its starting thresholds for the evaluator that graded this run."""
    rows = []
    for policy in policies.values():
        suited = policy.suited_to(trace.settings.evaluator, trace.settings.strip_evaluator)
        routed = reroute(trace, suited)
        score = "–" if routed.decision.score is None else f"{routed.decision.score:.2f}"
        needs = "; ".join(_need(item) for item in routed.missing if item is not Missing.ANSWER)
        rows.append(
            {
                "Policy": f"**{plain(policy.title)}**",
                "Decision": headline(routed.decision),
                "Score": f"{score} :gray[:small[{suited.lower:.2f} / {suited.upper:.2f}]]",
                "Why": plain(routed.decision.reason),
                "Would also need": plain(needs) or "nothing",
            }
        )
    st.table(rows, hide_index=True, border="horizontal", alt="Decision of each policy for this run")


def _need(missing: Missing) -> str:
    return missing.value.partition(":")[0]
