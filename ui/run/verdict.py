"""The verdict: action, reason in numbers, distance to flip, and the score line with its two thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.text.display import sentence
from crag_core.base.types import Action, Decision
from crag_core.decision.policy import Policy
from crag_core.trace.injection_scan import remark
from crag_core.view import verdict_lines
from crag_core.view.record import spent
from crag_core.view.run_view import RunView
from crag_core.view.score_line import picture, why_no_picture
from crag_core.view.score_words import PAGE, QUESTIONS, STEP, TWO_IN_ORDER
from ui import PARTS
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
    """The action in its colour and with its icon; a policy's own name for it follows. Plain RAG has no action."""
    if decision.verdict is None:
        return f":gray[{plain(verdict_lines.headline(decision))}]"
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
    if decision.verdict and (worth := presets.probability(decision.score)):
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
    if decision.verdict is None:
        return ["Shown as plain RAG, from the record. No model was called."]
    then = f"not {taken.verdict} but" if taken.verdict else "not plain RAG but"
    same = "still" if taken.verdict is decision.verdict else then
    return [f"Decided again from the record: {same} **{decision.action}**. No model was called."]


_score_line = st.components.v2.component(
    "crag_score_line",
    html="<div class='scores'></div>",
    css=(PARTS / "score_line.css").read_text("utf-8"),
    js=(PARTS / "score_line.js").read_text("utf-8"),
)


def draw_scores(view: RunView, on_move: Callable[[float, float, bool], None] | None) -> None:
    """`on_move(lower, upper, done)` gets where the thresholds were moved, `done` once let go; None: they are fixed."""
    drawn = picture(view)
    if drawn is None:
        st.caption(why_no_picture(view))
        return
    if len(drawn.lines) > 1:
        st.caption(TWO_IN_ORDER)

    def moved() -> None:
        thresholds = read_move(st.session_state["scores"].moved, view.policy)
        if on_move and thresholds:
            on_move(*thresholds)

    more = {"can_move": on_move is not None, "questions": QUESTIONS, "step": STEP, "page": PAGE}
    _score_line(key="scores", data=to_plain(drawn) | more, on_moved_change=moved)


def read_move(sent: Any, policy: Policy) -> tuple[float, float, bool] | None:
    """Thresholds as a browser sends them; None for what `policy` may not have."""
    if not isinstance(sent, dict):
        return None
    values = (sent.get("lower"), sent.get("upper"))
    numbers = (value for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    found = [float(value) for value in numbers if math.isfinite(value)]
    if len(found) < len(values) or not policy.allows(*found):
        return None
    return found[0], found[1], bool(sent.get("done"))
