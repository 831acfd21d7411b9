"""The verdict first: the action, its reason in numbers, and how far it is from flipping."""

from __future__ import annotations

import streamlit as st

from crag_core.figures import readable
from crag_core.policy import Policy
from crag_core.reroute import Reroute
from crag_core.stability import flips, stability
from crag_core.trace import Trace
from crag_core.types import Action, Decision
from ui.render_signals import ONE_FOR_BOTH, draw_bests, is_one_for_both
from ui.text import plain

COLOURS = {Action.CORRECT: "green", Action.AMBIGUOUS: "orange", Action.INCORRECT: "red"}
ICONS = {Action.CORRECT: "check_circle", Action.AMBIGUOUS: "help", Action.INCORRECT: "cancel"}
MEANINGS = {
    Action.CORRECT: "The evidence holds up.",
    Action.AMBIGUOUS: "The evidence is on the subject, but may not be enough.",
    Action.INCORRECT: "The evidence does not fit the question.",
}


def draw_verdict(trace: Trace, policy: Policy, routed: Reroute) -> None:
    decision = routed.decision
    with st.container(border=True):
        # Two best scores with their thresholds take a row of their own.
        is_wide = decision.topical is not None
        words, numbers = (
            (st.container(), st.container()) if is_wide else st.columns([5, 4], vertical_alignment="center")
        )
        with words:
            st.header(headline(decision), anchor=False)
            st.markdown(f"{_meaning(decision)} {plain(_sentence(decision.reason))}")
            if is_one_for_both(policy, decision):
                st.caption(f":material/info: {ONE_FOR_BOTH}")
            _draw_flips(trace, policy, decision)
            for note in routed.knowledge.notes:
                st.caption(f":material/info: {plain(note)}")
        with numbers.container(horizontal=True, horizontal_alignment="distribute"):
            kept = sum(verdict.kept for verdict in routed.knowledge.verdicts)
            _draw_overall(policy, decision)
            st.metric("Sentences kept", f"{kept} of {len(routed.knowledge.verdicts)}", width="content")
            st.metric("Model calls", trace.usage.calls, width="content", help="Really made in this run.")
            st.metric("Seconds", f"{trace.seconds:.1f}", width="content")
        _draw_difference(trace, policy, decision)


def _draw_overall(policy: Policy, decision: Decision) -> None:
    if decision.topical is None:
        score = "–" if decision.score is None else readable(decision.score, policy.lower, policy.upper)[0]
        st.metric("Overall score", score, width="content", help=_confidence(decision))
    else:
        draw_bests(policy, decision, _confidence(decision))


def headline(decision: Decision) -> str:
    """The action in its colour and with its icon; a policy's own name for it follows."""
    own = decision.label.upper() != decision.action
    named = f" · {plain(decision.label)}" if own else ""
    return f":{COLOURS[decision.action]}[:material/{ICONS[decision.action]}: {decision.action}{named}]"


def _meaning(decision: Decision) -> str:
    """Doubt without a score says nothing of the evidence."""
    unknown = decision.action is Action.AMBIGUOUS and decision.score is None
    return "Nothing is known of the evidence." if unknown else MEANINGS[decision.action]


def _confidence(decision: Decision) -> str:
    sure = decision.confidence
    return "Nothing to compare." if sure is None else f"Confidence in {decision.action}: {sure:.2f}."


def _draw_flips(trace: Trace, policy: Policy, decision: Decision) -> None:
    stable = stability(policy, trace.passages or (), trace.grades, trace.signals, trace.rounds)
    near = flips(stable, policy)
    if near:
        told = (plain(f"Flips to {flip.sentence} ({flip.distance:.2f} away)") for flip in near)
        st.caption("  \n".join(f":material/swap_horiz: {line}" for line in told))
    else:
        bound = "; each moves only as far as the other" if decision.topical is not None else ""
        st.caption(f":material/lock: No single threshold can change this decision{bound}.")


def _draw_difference(trace: Trace, policy: Policy, decision: Decision) -> None:
    taken, settings = trace.decision, trace.settings
    if taken is None or policy == settings.policy:
        return
    then = settings.policy
    if then.name != policy.name:
        what = f"policy {policy.title} instead of {then.title}"
    else:
        what = f"{policy.lower:.2f} and {policy.upper:.2f} instead of {then.lower:.2f} and {then.upper:.2f}"
    same = "still" if taken.action is decision.action else f"not {taken.action} but"
    st.info(
        f"Decided again from the record, with {plain(what)}: {same} **{decision.action}**. No model was called.",
        icon=":material/replay:",
    )


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}."
