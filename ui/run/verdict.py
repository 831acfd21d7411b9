"""The verdict: action, reason in numbers, and distance to flip."""

from __future__ import annotations

import streamlit as st

from crag_core.base.text.display import counted
from crag_core.base.text.numbers import readable
from crag_core.base.types import Action, Decision
from crag_core.decision.policy import Policy
from crag_core.decision.stability import flips, stability
from crag_core.trace.edits import edited
from crag_core.trace.injection_scan import remark
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from ui.run.two_signals import ONE_FOR_BOTH, draw_bests, is_one_for_both
from ui.shell import presets
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
        with st.grid(2, min_column_width=330, gap=("xsmall", "small"), vertical_alignment="center") as grid:
            with grid.cell():
                st.header(headline(decision), anchor=False)
                st.markdown(f"{_meaning(decision)} {plain(_sentence(decision.reason))}")
            with grid.cell().container(horizontal=True, horizontal_alignment="distribute"):
                kept = sum(verdict.kept for verdict in routed.knowledge.verdicts)
                _draw_overall(policy, decision)
                st.metric("Sentences kept", f"{kept} of {len(routed.knowledge.verdicts)}", width="content")
        # Always two lines where there is room, so that nothing below moves with a threshold.
        st.caption(f"{_flips(trace, policy, decision)}  \n{_remarks(trace, policy, routed)}")


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


def _flips(trace: Trace, policy: Policy, decision: Decision) -> str:
    seen = edited(trace)
    stable = stability(policy, seen.passages or (), seen.grades, seen.signals, seen.rounds)
    near = flips(stable, policy)
    if near:
        message = (plain(f"Flips to {flip.sentence} ({flip.distance:.2f} away)") for flip in near)
        return " · ".join(f":material/swap_horiz: {line}" for line in message)
    bound = ", since they cannot pass each other" if decision.topical is not None else ""
    return f":material/lock: No single threshold can change this decision{bound}."


def _remarks(trace: Trace, policy: Policy, routed: Reroute) -> str:
    """What the run has cost, the difference to it, and what was noted about decision and evidence."""
    calls = counted(trace.usage.calls, "model call") if trace.usage.calls else "no model call"
    message = [f":material/receipt: {calls}, {trace.seconds:.1f} s in this run"]
    message += [f":material/replay: {line}" for line in _difference(trace, policy, routed.decision)]
    if worth := presets.probability(routed.decision.score):
        message.append(f":material/bookmark: {worth}")
    notes = [ONE_FOR_BOTH] if is_one_for_both(policy, routed.decision) else []
    if suspicious := remark(trace):
        message.append(f":material/warning: {suspicious}")
    message += [f":material/info: {plain(note)}" for note in (*notes, *routed.knowledge.notes)]
    return " · ".join(message)


def _difference(trace: Trace, policy: Policy, decision: Decision) -> list[str]:
    """Nothing while a run goes on: it is not taken yet."""
    taken = trace.decision
    if taken is None:
        return []
    if (policy, decision) == (trace.settings.policy, taken):
        return ["As the run was taken."]
    same = "still" if taken.action is decision.action else f"not {taken.action} but"
    return [f"Decided again from the record: {same} **{decision.action}**. No model was called."]


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}."
