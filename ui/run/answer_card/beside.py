"""What stands beside the answer: the model's own knowledge, the answer of a log, and the first answer."""

from __future__ import annotations

import streamlit as st

from crag_core.base.text.display import sentence
from crag_core.base.types.passages import Logged
from crag_core.base.types.steps import Usage
from crag_core.view.answer.consolidated import KNOWS_NOTHING, NO_EVIDENCE, Group, consolidated_view
from crag_core.view.evidence import difference
from crag_core.view.record import spent
from crag_core.view.run_view import RunView
from crag_core.view.score_words import reason_of
from crag_core.view.verdict_lines import changes
from ui.run.answer_card.card import OnGenerate, draw_answer
from ui.run.answer_card.offer import Offer
from ui.run.verdict import counts, headline
from ui.shell.text import paragraphs, plain


def draw_consolidated(view: RunView) -> None:
    """Beside the answer, and told from its evidence; nothing under a policy that consolidates nothing."""
    found = consolidated_view(view)
    if found is None:
        return
    with st.container(border=True, gap="small", key=f"consolidated_{view.trace.id}"):
        st.markdown(f"#### :violet-badge[:material/psychology: {found.title}]", width="content")
        if found.asked:
            st.markdown("\n".join(f"- {plain(text)}" for text in found.own) or f":gray[{KNOWS_NOTHING}]")
            if found.own:
                st.caption(NO_EVIDENCE)
        st.markdown("**Put together with the evidence**" if found.asked else "**Put together**")
        st.markdown("\n".join(map(_line, found.groups)) or ":gray[Nothing of it bears on the question.]")
        for line in found.conflicts:
            st.caption(f":orange[:material/compare_arrows: {plain(line)}]")
        for text in found.from_memory_alone:
            st.caption(f":orange[:material/psychology: Only the model's own knowledge says: {plain(text)}]")


def _line(group: Group) -> str:
    links = " ".join(f"[\\[{one.number}\\]](#{one.label.anchor})" for one in group.cited)
    memory = "the model's memory" if group.in_memory else ""
    return f"- {plain(group.text)} :gray[· {' and '.join(filter(None, (links, memory)))}]"


def draw_logged(logged: Logged | None) -> None:
    """Beside ours, and told from it; nothing where there is no log, or it has neither answer nor right answer."""
    if logged is None or not (logged.answer or logged.references):
        return
    with st.container(border=True, gap="small", key="answer_logged"):
        st.markdown("#### :gray-badge[:material/rule: Answer in the log]", width="content")
        st.markdown(paragraphs(logged.answer) if logged.answer else ":gray[The log has no answer.]")
        if logged.references:
            st.caption(f"Right answer: {plain(' | '.join(logged.references))}")
        if logged.log:
            st.caption(f":material/folder_open: {plain(f'Log {logged.log}, record {logged.record}')}")


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
                st.markdown(f"{plain(sentence(reason_of(decision, view.policy)))}  \n:gray[{plain(note)}]")
                draw_answer(view, *((offered, on_generate) if view is second else ()))
                st.caption(f":material/receipt: {spent(view.trace.usage, view.trace.seconds)}")
    added = [step for step in second.trace.steps if step not in first.trace.steps]
    more = spent(sum((step.usage for step in added), Usage()), sum(step.seconds for step in added))
    found = difference(first.routed, second.routed)
    st.markdown(f"Evidence: {counts(found)} · the second answer took {more} more.")
