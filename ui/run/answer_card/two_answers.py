"""A second answer, generated from the first run under other settings, beside the first."""

from __future__ import annotations

import streamlit as st

from crag_core.base.text.display import sentence
from crag_core.base.types.steps import Usage
from crag_core.view.evidence import difference
from crag_core.view.record import spent
from crag_core.view.run_view import RunView
from crag_core.view.verdict_lines import changes
from ui.run.answer_card.card import OnGenerate, draw_answer
from ui.run.answer_card.offer import Offer
from ui.run.changes import counts
from ui.run.verdict import headline
from ui.shell.text import plain


def draw_two_answers(
    first: RunView, second: RunView, offered: Offer | None = None, on_generate: OnGenerate | None = None
) -> None:
    """The run as taken beside the one that was generated from it; one below the other where there is little room."""
    message = changes(first.trace, second.trace, second.policy)
    changed = f"With {'; '.join(message)}." if message else "With the same settings."
    with st.grid(2, min_column_width=420, gap="medium", key="two_answers") as grid:
        for view, title, note in ((first, "First answer", "Original run."), (second, "Second answer", changed)):
            with grid.cell():
                decision = view.routed.decision
                st.markdown(f"**{title}**")
                st.subheader(headline(decision), anchor=False)
                st.markdown(f"{plain(sentence(decision.reason))}  \n:gray[{plain(note)}]")
                draw_answer(view, *((offered, on_generate) if view is second else ()))
                st.caption(f":material/receipt: {spent(view.trace.usage, view.trace.seconds)}")
    added = [step for step in second.trace.steps if step not in first.trace.steps]
    more = spent(sum((step.usage for step in added), Usage()), sum(step.seconds for step in added))
    found = difference(first.routed, second.routed)
    st.markdown(f"Evidence: {counts(found)} · the second answer took {more} more.")
