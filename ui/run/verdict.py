"""The verdict: action, reason in numbers, and distance to flip."""

from __future__ import annotations

import streamlit as st

from crag_core.base.text.display import sentence
from crag_core.base.types import Action, Decision
from crag_core.trace.injection_scan import remark
from crag_core.view import verdict_lines
from crag_core.view.record import spent
from crag_core.view.run_view import RunView
from ui.shell import presets
from ui.text import plain

COLOURS = {Action.CORRECT: "green", Action.AMBIGUOUS: "orange", Action.INCORRECT: "red"}
ICONS = {Action.CORRECT: "check_circle", Action.AMBIGUOUS: "help", Action.INCORRECT: "cancel"}


def draw_verdict(view: RunView) -> None:
    decision = view.routed.decision
    with st.container(border=True):
        with st.grid(2, min_column_width=330, gap=("xsmall", "small"), vertical_alignment="center") as grid:
            with grid.cell():
                st.header(headline(decision), anchor=False)
                st.markdown(f"{verdict_lines.meaning(decision)} {plain(sentence(decision.reason))}")
            with grid.cell().container(horizontal=True, horizontal_alignment="distribute"):
                for one in verdict_lines.figures(view):
                    st.metric(
                        one.name, one.value, one.against or None, delta_color="off", delta_arrow="off",
                        width="content", help=one.hint,
                    )  # fmt: skip
        # Always two lines where there is room, so that nothing below moves with a threshold.
        st.caption(f"{_flips(view)}  \n{_remarks(view)}")


def headline(decision: Decision) -> str:
    """The action in its colour and with its icon; a policy's own name for it follows."""
    icon = ICONS[decision.action]
    return f":{COLOURS[decision.action]}[:material/{icon}: {plain(verdict_lines.headline(decision))}]"


def _flips(view: RunView) -> str:
    near = verdict_lines.flip_lines(view)
    if near:
        return " · ".join(f":material/swap_horiz: {plain(line)}" for line in near)
    return f":material/lock: {verdict_lines.no_flip(view)}"


def _remarks(view: RunView) -> str:
    """What the run has cost, the difference to it, and what was noted about decision and evidence."""
    trace, decision = view.trace, view.routed.decision
    message = [f":material/receipt: {spent(trace.usage, trace.seconds)} in this run"]
    message += [f":material/replay: {line}" for line in _difference(view)]
    if worth := presets.probability(decision.score):
        message.append(f":material/bookmark: {worth}")
    if suspicious := remark(trace):
        message.append(f":material/warning: {suspicious}")
    message += [f":material/info: {plain(note)}" for note in verdict_lines.notes(view)]
    return " · ".join(message)


def _difference(view: RunView) -> list[str]:
    """Nothing while a run goes on: it is not taken yet."""
    taken, decision = view.trace.decision, view.routed.decision
    if taken is None:
        return []
    if view.policy == view.trace.settings.policy and decision.decides_like(taken):
        return ["As the run was taken."]
    same = "still" if taken.action is decision.action else f"not {taken.action} but"
    return [f"Decided again from the record: {same} **{decision.action}**. No model was called."]
