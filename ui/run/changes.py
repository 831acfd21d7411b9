"""What was changed since the run was taken, what that does to the evidence, and the ways back."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from crag_core.base.text.display import shortened
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from crag_core.view.evidence import Difference, difference
from crag_core.view.run_view import name_of
from crag_core.view.verdict_lines import changes
from ui.run.verdict import remarks
from ui.session.current_run import View
from ui.text import plain

_LISTED = 300  # characters of a sentence


def draw_changes(
    view: View, first: Trace | None, on_undo: Callable[[], None], on_original: Callable[[Trace], None]
) -> None:
    """One line, always there, so that nothing below it moves with a threshold.

    `first` is the run that the one on the page was generated from, None where it was asked by itself.
    """
    changed = changes(view.taken, view.trace, view.policy)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="what_if"):
        st.markdown(f":small[{_state(view, first, changed)} · {remarks(view)}]", width="content")
        if changed:
            st.button("Undo", "what_if_undo", on_click=on_undo, icon=":material/undo:", type="tertiary")
        if first is not None and first.id != view.taken.id:
            st.button(
                "Original run", "what_if_original", on_click=on_original, args=(first,),
                icon=":material/first_page:", type="tertiary",
            )  # fmt: skip
        if changed:
            _draw_difference(view.was, view.routed)


def _state(view: View, first: Trace | None, changed: tuple[str, ...]) -> str:
    if changed:
        return f":material/edit: **Changed:** {plain('; '.join(changed))}"
    if first is None or first.id == view.taken.id:
        return ":gray[:material/replay: Original run]"
    then = changes(first, view.taken, view.taken.settings.policy)
    how = f"with {plain('; '.join(then))}" if then else "again"
    return f":gray[:material/replay: Generated {how}]"


def _draw_difference(was: Reroute, routed: Reroute) -> None:
    found = difference(was, routed)
    pieces = st.popover(
        f"Evidence {counts(found)}", type="tertiary", icon=":material/difference:", key="what_if_pieces",
        on_change="rerun",
    )  # fmt: skip
    if pieces.open:
        with pieces:
            st.markdown(_pieces(found, was, routed))


def counts(found: Difference) -> str:
    """In words and in the signs that the sentences carry; passages that go in whole count as one piece."""
    signs = {"kept": ("green", ""), "gone": ("orange", "− "), "new": ("blue", "+ ")}
    message = [f":{signs[what][0]}-badge[{signs[what][1]}{count} {what}]" for what, count in found.counts]
    return " ".join([*message, ":gray-badge[in another order]"] if found.reordered else message)


def _pieces(found: Difference, was: Reroute, routed: Reroute) -> str:
    """By passage: what is gone, what is new, what is kept."""
    texts = {verdict.strip.id: verdict.strip.text for verdict in (*was.knowledge.verdicts, *routed.knowledge.verdicts)}
    parts = []
    for change in found.changes:
        lines = [f"**{plain(str(name_of(change.passage)))}**"]
        for sign, colour, pieces in (
            ("−", "orange", change.gone),
            ("+", "blue", change.new),
            ("=", "gray", change.kept),
        ):
            shown = (plain(shortened(texts.get(piece, "the whole chunk"), _LISTED)) for piece in pieces)
            lines += [f":{colour}[**{sign}** {text}]" for text in shown]
        parts.append("  \n".join(lines))
    return "\n\n".join(parts) or "No evidence, then as now."
