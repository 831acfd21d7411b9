"""The verdict on the retrieval, what was changed since the run was taken, and the score line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from crag_core.base.serialization import to_plain
from crag_core.base.text.display import shortened
from crag_core.base.types.decisions import Action, Decision
from crag_core.decision.policy import Policy
from crag_core.trace.injection_scan import remark
from crag_core.trace.trace import Trace
from crag_core.view import verdict_lines
from crag_core.view.evidence import Difference, difference
from crag_core.view.record import spent
from crag_core.view.run_view import RunView
from crag_core.view.score_line import picture, why_no_picture
from crag_core.view.score_words import PAGE, STEP, reason_of
from ui import PARTS
from ui.session.current_run import View
from ui.shell.text import plain

COLOURS = {Action.CORRECT: "green", Action.AMBIGUOUS: "orange", Action.INCORRECT: "red"}
ICONS = {Action.CORRECT: "check_circle", Action.AMBIGUOUS: "help", Action.INCORRECT: "cancel"}
_LONGEST = 40
"""Characters of a change on its button."""


def draw_verdict(view: RunView) -> None:
    """What the retrieval is judged to be and why; which threshold would change that, the cost, and remarks.

    In the row that `verdict_row` begins.
    """
    decision = view.routed.decision
    if view.not_graded_by:
        st.header(f":gray-badge[:material/pending: {plain(view.not_graded_by)}]", anchor=False)
        return
    st.header(chip(decision), anchor=False)
    near = " · ".join(f":material/swap_horiz: {plain(line)}" for line in verdict_lines.flip_lines(view))
    flips = near or f":material/lock: {verdict_lines.no_flip(view)}"
    details = " · ".join((flips, *_remarks(view)))
    st.markdown(
        f"{plain(verdict_lines.chip(decision, reason_of(decision, view.policy)).reason)}  \n:small[:gray[{details}]]"
    )


def draw_changes(
    view: View, first: Trace | None, on_undo: Callable[[], None], on_original: Callable[[Trace], None]
) -> None:
    """One line beside the verdict, so that nothing moves with a threshold.

    `first` is the run that the one on the page was generated from, None where it was asked by itself.
    """
    changed = verdict_lines.changes(view.taken, view.trace, view.policy)
    is_generated = first is not None and first.id != view.taken.id
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content", key="what_if"):
        if changed:
            _draw_changed(view, changed)
            st.button("Undo", "what_if_undo", on_click=on_undo, icon=":material/undo:", type="tertiary")
        elif not is_generated:
            st.markdown(":small[:gray[:material/replay: Original run]]", width="content")
        if first is not None and is_generated:
            then = "; ".join(verdict_lines.changes(first, view.taken, view.taken.settings.policy))
            st.button(
                "Back to the original run", "what_if_original", f"This one was generated from it. {plain(then)}",
                on_original, (first,), icon=":material/first_page:", type="tertiary",
            )  # fmt: skip


def _draw_changed(view: View, changed: tuple[str, ...]) -> None:
    label = shortened(f"Changed: {changed[0]}", _LONGEST) if len(changed) == 1 else f"{len(changed)} changes"
    more = st.popover(
        plain(label), type="tertiary", icon=":material/edit:", key="what_if_pieces", on_change="rerun",
    )  # fmt: skip
    if more.open:
        found = difference(view.was, view.routed)
        with more:
            st.markdown(f"{plain('; '.join(changed))}.\n\nEvidence: {counts(found)}")


def counts(found: Difference) -> str:
    """In words and in the signs that the sentences carry; passages that go in whole count as one piece."""
    signs = {"kept": ("green", ""), "gone": ("orange", "− "), "new": ("blue", "+ ")}
    message = [f":{signs[what][0]}-badge[{signs[what][1]}{count} {what}]" for what, count in found.counts]
    return " ".join([*message, ":gray-badge[in another order]"] if found.reordered else message)


def verdict_row() -> DeltaGenerator:
    """For the verdict and what stands beside it; page.css makes it one line of as much height whatever is decided."""
    return st.container(key="verdict", gap="small")


def headline(decision: Decision) -> str:
    """The action in its colour and with its icon; a policy's own name for it follows. Plain RAG has no action."""
    if decision.verdict is None:
        return f":gray[{plain(verdict_lines.headline(decision))}]"
    icon = ICONS[decision.action]
    return f":{COLOURS[decision.action]}[:material/{icon}: {plain(verdict_lines.headline(decision))}]"


def chip(decision: Decision) -> str:
    """Names what it judges: "Retrieval: INCORRECT" above a right answer is no contradiction."""
    title = plain(verdict_lines.chip(decision, "").title)
    if decision.verdict is None:
        return f":gray-badge[{title}]"
    return f":{COLOURS[decision.action]}-badge[:material/{ICONS[decision.action]}: {title}]"


def _remarks(view: RunView) -> Iterator[str]:
    yield f":material/receipt: {spent(view.trace.usage, view.trace.seconds)}"
    if suspicious := remark(view.trace):
        yield f":material/warning: {suspicious}"
    yield from (f":material/info: {plain(note)}" for note in verdict_lines.notes(view))


_score_line = st.components.v2.component(
    "crag_score_line", html="<div class='scores'></div>", css=(PARTS / "score_line.css").read_text("utf-8"),
    js=(PARTS / "score_line.js").read_text("utf-8"),
)  # fmt: skip


def draw_scores(view: RunView, on_move: Callable[[float, float, bool], None] | None) -> None:
    """`on_move(lower, upper, done)` gets where the thresholds were moved, `done` once let go; None: they are fixed."""
    drawn = picture(view)
    if drawn is None:
        st.caption(why_no_picture(view))
        return

    def moved() -> None:
        thresholds = read_move(st.session_state["scores"].moved, view.policy)
        if on_move and thresholds:
            on_move(*thresholds)

    more = {"can_move": on_move is not None, "step": STEP, "page": PAGE}
    _score_line(key="scores", data=to_plain(drawn) | more, on_moved_change=moved)


def read_move(sent: Any, policy: Policy) -> tuple[float, float, bool] | None:
    """Thresholds as a browser sends them; None for what `policy` may not have."""
    if not isinstance(sent, dict):
        return None
    found = (sent.get("lower"), sent.get("upper"))
    values = [value for value in found if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(values) != len(found) or not policy.allows(*values):  # NaN and numbers beyond a float among them
        return None
    return float(values[0]), float(values[1]), bool(sent.get("done"))
