"""Passages and web results as cards that open and fold: every sentence in its place, and the buttons of what if."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from crag_core.base.types import Edits, Excerpt, Grade, Origin, Passage, Round
from crag_core.decision.policy import Policy
from crag_core.trace.injection_scan import warnings
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from ui.run.passages.card_heads import draw_head
from ui.run.passages.passage_cards import Cards, describe, head_of, title
from ui.run.passages.sentences import draw_sentences
from ui.text import plain

_OPEN = 3
"""So many cards of a list start open, whatever is decided: a slider that moves must not fold anything."""


@dataclass(frozen=True)
class CardActions:
    """What the buttons of a card do, given the passage's id; `feedback` draws something in place."""

    on_drop: Callable[[str], None]
    on_pin: Callable[[str], None]
    on_place: Callable[[str], None] | None = None
    feedback: Callable[[Passage], None] | None = None


def draw_passages(
    trace: Trace,
    routed: Reroute,
    *,
    policy: Policy | None = None,
    was: Reroute | None = None,
    edits: Edits | None = None,
    actions: CardActions | None = None,
) -> None:
    """Every corpus passage that this policy looks at, in the order of finding, and which later retrieval found it.

    `edits` None: those of the trace. Without `policy` no cut-off is drawn, without `was` nothing is compared.
    """
    edits = edits or trace.edits
    cards = Cards(trace, routed, policy, was, edits)
    shown = {passage.id for passage in routed.decision_path.looked_at} | set(edits.dropped)
    last = {passage.id for passage in routed.decision_path.evidence} | set(edits.dropped)
    later = {id_: found for found in reversed(trace.rounds) for id_ in _found_in(found)}
    first = {passage.id for passage in trace.passages or ()}
    ranked = list(enumerate(trace.all_passages, start=1))
    with st.container(gap="xxsmall", key="passage_list"):
        for rank, passage in ranked:
            if passage.id in shown:
                path = () if passage.id in first else later[passage.id].path
                notes = [f"found by a later retrieval: {' → '.join(path)}"] if path else []
                notes += [] if passage.id in last else ["looked at in an earlier iteration only"]
                draw_card(cards, passage, rank, actions, "; ".join(notes))
    if left := sum(passage.id not in shown for _, passage in ranked):
        st.caption(f"The record holds {left} more passages, of retrievals that this policy does not ask for.")


def _found_in(found: Round) -> list[str]:
    return [passage.id for retrieval in found.retrievals for passage in retrieval.passages]


def draw_card(cards: Cards, passage: Passage, rank: int, actions: CardActions | None, note: str = "") -> None:
    """One line, and below it, when open, the passage with its sentences; a dropped one is a line with the way back."""
    if passage.id in cards.edits.dropped:
        _draw_dropped(cards, passage, rank, actions)
        return
    key = f"{cards.trace.id}_{anchor(passage, rank)}"
    if not draw_head(head_of(cards, passage, rank, anchor(passage, rank)), f"head_{key}", is_open=rank <= _OPEN):
        return
    verdicts = cards.verdicts.get(passage.id, [])
    with st.container(border=True, key=f"card_{key}", gap="xsmall"):
        st.markdown(describe(cards, passage))
        for warning in warnings(cards.trace, passage):
            st.warning(plain(warning), icon=":material/warning:")
        if note:
            st.caption(f":material/replay: {plain(note)}")
        draw_sentences(
            passage,
            verdicts,
            key=f"sentences_{key}",
            label=f"Passage {rank}, sentence by sentence",
            cutoff=cards.cutoff(passage.origin),
            then=cards.then and cards.then[1],
        )
        _draw_actions(cards, passage, key, actions)


def anchor(passage: Passage, rank: int) -> str:
    """The anchor of a passage's card, which citations lead to."""
    return f"{'web' if passage.origin is Origin.WEB else 'passage'}-{rank}"


def _draw_actions(cards: Cards, passage: Passage, key: str, actions: CardActions | None) -> None:
    grade = cards.trace.grade_of(passage.id)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if actions:
            is_pinned = passage.id in cards.edits.pinned
            place = actions.on_place if passage.origin is Origin.CORPUS else None
            for label, icon, act, effect in (
                ("Drop", "remove_circle", actions.on_drop, "As if it had never been found."),
                ("Unpin" if is_pinned else "Pin", "push_pin", actions.on_pin, "As if it had been graded 1.00."),
                ("Show in the document", "find_in_page", place, None),
            ):
                if act:
                    st.button(
                        label, f"{icon}_{key}", effect, act, (passage.id,), icon=f":material/{icon}:", type="tertiary"
                    )
        if grade and (grade.raw or grade.parts):
            _draw_record(grade)
        if actions and actions.feedback:
            actions.feedback(passage)


def _draw_record(grade: Grade) -> None:
    with st.popover("Evaluator's record", type="tertiary", icon=":material/data_object:"):
        if grade.parts:
            st.markdown("  \n".join(f"{plain(name)}: **{value:.3f}**" for name, value in grade.parts))
        if grade.raw is not None:
            st.caption("The raw reply, as it came:")
            st.code(grade.raw or "(empty)", language=None, wrap_lines=True)


def _draw_dropped(cards: Cards, passage: Passage, rank: int, actions: CardActions | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":gray[{rank} · ~~{plain(title(passage))}~~ · **dropped by you**]", width="content")
        if actions:
            key = f"back_{cards.trace.id}_{anchor(passage, rank)}"
            act, args = actions.on_drop, (passage.id,)
            st.button("Put back", key, icon=":material/undo:", type="tertiary", on_click=act, args=args)


def source_line(number: int, excerpt: Excerpt, rank: int) -> str:
    """One entry of the list of sources, leading to the passage's card."""
    return f"[\\[{number}\\]](#{anchor(excerpt.passage, rank)}) {plain(title(excerpt.passage))}"
