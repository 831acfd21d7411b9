"""The two signals of a decision in words: answering and topical, each with its threshold."""

from __future__ import annotations

import streamlit as st

from crag_core.base.text.numbers import readable
from crag_core.base.types import ANSWERING, TOPICAL, Action, Decision, Grade
from crag_core.decision.policy import Aggregation, Policy
from crag_core.view.score_words import QUESTIONS

ONE_FOR_BOTH = "One score for both signals: it is compared with both thresholds, as in Paper."


def is_one_for_both(policy: Policy, decision: Decision) -> bool:
    """Whether a policy of two signals had but one number to decide by: the evaluator tells no parts."""
    is_compared = decision.score is not None and decision.rule is None
    return policy.aggregation is Aggregation.TWO_SIGNAL and is_compared and decision.topical is None


def draw_bests(policy: Policy, decision: Decision, sure: str) -> None:
    """The two numbers that were compared, each with its threshold."""
    for name, best, threshold, against, then in (
        (ANSWERING, decision.score, policy.upper, "upper", "CORRECT if it reaches upper."),
        (TOPICAL, decision.topical, policy.lower, "lower", "If not CORRECT: INCORRECT if it is below lower."),
    ):
        if best is not None:
            value, limit = readable(best, threshold)
            st.metric(
                f"Best {name}",
                value,
                f"{'below' if best < threshold else 'above' if best > threshold else 'at'} {against} {limit}",
                delta_color="off",
                delta_arrow="off",
                width="content",
                help=f"Of all passages: {QUESTIONS[name]} {then} {sure}",
            )


def describe_deciding(grade: Grade | None, decision: Decision) -> str:
    """What a deciding passage is the best in, of two signals: ": best answering"."""
    if decision.topical is None or grade is None:
        return ""
    of_topical = decision.action is not Action.CORRECT and grade.part(TOPICAL) == decision.topical
    found = [ANSWERING] * (grade.part(ANSWERING) == decision.score) + [TOPICAL] * of_topical
    return f": best {' and '.join(found)}" if found else ""
