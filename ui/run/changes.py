"""What was changed since the run was taken, what that does to the evidence, and the ways back."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from crag_core.base.text.display import shortened
from crag_core.trace.trace import Trace
from crag_core.view.evidence import Difference, difference
from crag_core.view.verdict_lines import changes
from ui.session.current_run import View
from ui.shell.text import plain

_LABEL = 40


def draw_changes(
    view: View, first: Trace | None, on_undo: Callable[[], None], on_original: Callable[[Trace], None]
) -> None:
    """One line beside the verdict, so that nothing moves with a threshold.

    `first` is the run that the one on the page was generated from, None where it was asked by itself.
    """
    changed = changes(view.taken, view.trace, view.policy)
    is_generated = first is not None and first.id != view.taken.id
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content", key="what_if"):
        if changed:
            _draw_changed(view, changed)
            st.button("Undo", "what_if_undo", on_click=on_undo, icon=":material/undo:", type="tertiary")
        elif not is_generated:
            st.markdown(":small[:gray[:material/replay: Original run]]", width="content")
        if first is not None and is_generated:
            then = "; ".join(changes(first, view.taken, view.taken.settings.policy))
            st.button(
                "Back to the original run", "what_if_original", f"This one was generated from it. {plain(then)}",
                on_original, (first,), icon=":material/first_page:", type="tertiary",
            )  # fmt: skip


def _draw_changed(view: View, changed: tuple[str, ...]) -> None:
    label = shortened(f"Changed: {changed[0]}", _LABEL) if len(changed) == 1 else f"{len(changed)} changes"
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
