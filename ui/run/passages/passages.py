"""Passages and web results as cards that open and fold: every sentence in its place, and the buttons of what if."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from crag_core.base.text.display import sentence
from crag_core.base.types import Grade, Origin, Passage
from crag_core.trace.reroute import Reroute
from crag_core.view.chunk_cards import ChunkCard, chunk_cards
from crag_core.view.run_view import RunView
from crag_core.view.score_words import QUESTIONS
from ui.run.passages.card_heads import draw_head
from ui.run.passages.sentences import draw_sentences
from ui.text import link, plain

_OPEN = 3
"""So many cards of a list start open, whatever is decided: a slider that moves must not fold anything."""


@dataclass(frozen=True)
class CardActions:
    """What the buttons of a card do, given the passage's id; `feedback` draws something in place."""

    on_drop: Callable[[str], None]
    on_pin: Callable[[str], None]
    on_place: Callable[[str], None] | None = None
    feedback: Callable[[Passage], None] | None = None


def draw_passages(view: RunView, was: Reroute | None = None, actions: CardActions | None = None) -> None:
    """Every corpus passage that this policy looks at, in the order of finding, and which later retrieval found it.

    What is new since `was` is marked; None: there is nothing to compare with.
    """
    cards = chunk_cards(view, was)
    with st.container(gap="xxsmall", key="passage_list"):
        for card in cards:
            if card.is_asked_for:
                draw_card(card, view.trace.id, actions)
    if left := sum(not card.is_asked_for for card in cards):
        st.caption(f"The record holds {left} more chunks, of retrievals that this policy does not ask for.")


def draw_card(card: ChunkCard, run_id: str, actions: CardActions | None) -> None:
    """One line, and below it, when open, the passage with its sentences; a dropped one is a line with the way back."""
    key, rank = f"{run_id}_{card.label.anchor}", card.label.rank
    if card.is_dropped:
        _draw_dropped(card, key, actions)
        return
    if not draw_head(card, f"head_{key}", is_open=rank <= _OPEN):
        return
    with st.container(border=True, key=f"card_{key}", gap="xsmall"):
        st.markdown(describe(card))
        for warning in card.warnings:
            st.warning(plain(warning), icon=":material/warning:")
        if card.notes:
            st.caption(f":material/replay: {plain('; '.join(card.notes))}")
        draw_sentences(card.sentences, f"sentences_{key}", f"Chunk {rank}, sentence by sentence")
        _draw_actions(card, key, actions)


def describe(card: ChunkCard) -> str:
    """What the line above has no room for: the reason, what the scores mean, citations, where it was found."""
    lines, url = [_grade(card)], card.passage.url
    if url:
        lines.insert(0, f":material/open_in_new: {link(url, url)}")
    if card.is_pinned:
        lines.insert(0, f":violet[:material/push_pin: {plain(sentence(card.edit))}]")
    badges = [f":blue-badge[{card.decides}]"] if card.decides else []
    if card.cited:
        badges.append(f":gray-badge[source {plain(' '.join(f'[{number}]' for number in card.cited))}]")
    last = " ".join([*badges, f":small[:gray[{plain(card.found)}]]" if card.found else ""])
    return "  \n".join(filter(None, [*lines, last.strip()]))


def _grade(card: ChunkCard) -> str:
    if card.ungraded:
        return f":orange[:material/warning: {plain(card.ungraded)}]"
    message = [f"**{value:.2f}** {name}{_question(name)}" for name, value in card.scores]
    return " · ".join([*message, plain(card.reason)] if card.reason else message)


def _question(name: str) -> str:
    return f": {QUESTIONS[name]}" if name in QUESTIONS else ""


def _draw_actions(card: ChunkCard, key: str, actions: CardActions | None) -> None:
    passage, grade = card.passage, card.grade
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if actions:
            place = actions.on_place if passage.origin is Origin.CORPUS else None
            for label, icon, act, effect in (
                ("Drop", "remove_circle", actions.on_drop, "As if it had never been found."),
                ("Unpin" if card.is_pinned else "Pin", "push_pin", actions.on_pin, "As if it had been graded 1.00."),
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


def _draw_dropped(card: ChunkCard, key: str, actions: CardActions | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        name = plain(str(card.label.name))
        st.markdown(f":gray[{card.label.rank} · ~~{name}~~ · **dropped by you**]", width="content")
        if actions:
            act, args = actions.on_drop, (card.passage.id,)
            st.button("Put back", f"back_{key}", icon=":material/undo:", type="tertiary", on_click=act, args=args)
