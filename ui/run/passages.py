"""Chunks and web results as cards, sentence by sentence, and every sentence on one picture and in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.text.display import counted, sentence
from crag_core.base.types.passages import Origin, Passage
from crag_core.base.types.web import WebOutcome
from crag_core.view.chunk_cards import ChunkCard, chunk_cards, opened_first, snippet_cards
from crag_core.view.path.stages import describe_page, describe_web
from crag_core.view.run_view import RunView
from crag_core.view.score_words import CALLED, QUESTIONS
from ui import PARTS
from ui.run.verdict import COLOURS
from ui.shell.text import link, plain

_head = st.components.v2.component(
    "passage_head",
    html=(
        '<div class="row"><h4><button type="button"><span class="rank"></span> <span class="title"></span> '
        '<span class="chips"></span> <span class="scores"></span> <span class="use"></span>'
        '<span class="arrow" aria-hidden="true"></span></button></h4></div>'
    ),
    css=(PARTS / "passage_head.css").read_text("utf-8"),
    js=(PARTS / "passage_head.js").read_text("utf-8"),
)
_sentences = st.components.v2.component(
    "sentences",
    html=(
        '<div class="box" role="group"><div class="top"><span class="note"></span>'
        '<span class="legend"><span></span></span></div><ol></ol></div>'
    ),
    css=(PARTS / "sentences.css").read_text("utf-8"),
    js=(PARTS / "sentences.js").read_text("utf-8"),
)
_WEB_ICONS = {WebOutcome.USED: "public", WebOutcome.OFF: "public_off", WebOutcome.REFUSED: "block"}


@dataclass(frozen=True)
class CardActions:
    """What the buttons of a card do, given the passage's id; `feedback` draws something in place."""

    on_drop: Callable[[str], None]
    on_pin: Callable[[str], None]
    on_place: Callable[[str], None]
    feedback: Callable[[Passage], None] | None


def draw_passages(view: RunView, actions: CardActions | None) -> None:
    """Every corpus passage that this policy looks at, in the order of finding, and which later retrieval found it."""
    cards = chunk_cards(view)
    first = opened_first(view, cards)
    with st.container(gap="xxsmall", key="passage_list"):
        for card in cards:
            if card.is_asked_for:
                _draw_card(card, view.trace.id, actions, is_open=card.passage.id == first)
    if left := sum(not card.is_asked_for for card in cards):
        st.caption(f"{counted(left, 'more chunk')} in the record, from retrievals this policy does not use.")


def draw_web(view: RunView, actions: CardActions | None) -> None:
    """The query and who wrote it, what came of it, and each snippet with its link."""
    web = view.trace.web
    if web is None or web.outcome in (WebOutcome.PENDING, WebOutcome.APPROVED):
        return
    st.subheader("From the web", anchor="web")
    asked = f" Query: **{plain(web.query)}** ({plain(web.query_by)})." if web.query else ""
    message = plain(describe_web(view.trace, view.routed))
    st.markdown(f":material/{_WEB_ICONS.get(web.outcome, 'warning')}: {message}{asked}")
    if len(web.attempts) > 1:
        attempts = ", ".join(f"{plain(one.provider)}: {one.outcome.value}" for one in web.attempts)
        st.caption(f"Asked in this order: {attempts}.")
    if web.pages:
        st.markdown("\n".join(f"- {link(page.url, page.url)} {plain(describe_page(page))}" for page in web.pages))
    cards = snippet_cards(view)
    with st.container(gap="xxsmall", key="web_results"):
        for card in cards:
            if card.is_asked_for:
                _draw_card(card, view.trace.id, actions, is_open=False)
    if left := sum(not card.is_asked_for for card in cards):
        st.caption(
            f"{counted(left, 'more web text')} in the record that this policy does not use, such as the snippet of a "
            "page that was read."
        )


def _draw_card(card: ChunkCard, run_id: str, actions: CardActions | None, is_open: bool) -> None:
    """One line, and below it, when open, the chunk with its sentences; a dropped one is a line with the way back."""
    key, rank = f"{run_id}_{card.label.anchor}", card.label.number
    if card.is_dropped:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f":gray[{rank} · ~~{plain(str(card.label.name))}~~ · **dropped by you**]", width="content")
            if actions:
                args = (card.passage.id,)
                st.button(
                    "Put back", f"back_{key}", None, actions.on_drop, args, icon=":material/undo:", type="tertiary"
                )
        return
    if not _draw_head(card, f"head_{key}", is_open):
        return
    with st.container(border=True, key=f"card_{key}", gap="xsmall"):
        st.markdown(_describe(card))
        for warning in card.warnings:
            st.warning(plain(warning), icon=":material/warning:")
        if card.notes:
            st.caption(f":material/replay: {plain('; '.join(card.notes))}")
        # All that a tooltip could say is on the page too, in words or signs that never change the height of a row.
        data = to_plain(card.sentences) | {"label": f"Chunk {rank}, sentence by sentence"}
        _sentences(data=data, key=f"sentences_{key}")
        _draw_actions(card, key, actions)


def _draw_head(card: ChunkCard, key: str, is_open: bool) -> bool:
    """Whether the card below is open now; `is_open` is how it starts. The browser keeps it under `key`."""
    data = {
        "anchor": card.label.anchor,
        "rank": card.label.number,
        "title": str(card.label.name),
        "scores": card.compared,
        "ungraded": ["not graded"] if card.ungraded else [],
        "action": [(COLOURS[card.action], card.action.value)] if card.action else [],
        "use": card.use,
        "used": card.is_used,
        "chips": card.chips,
        "open": is_open,
    }
    drawn = _head(data=data, key=key, default={"open": is_open}, on_open_change=lambda: None)
    return bool(drawn.open)


def _describe(card: ChunkCard) -> str:
    """What the line above has no room for: the reason, what the scores mean, citations, where it was found."""
    lines, url = [_grade(card)], card.passage.url
    if url:
        lines.insert(0, f":material/open_in_new: {link(url, url)}")
    if card.is_pinned:
        lines.insert(0, f":violet[:material/push_pin: {plain(sentence(card.edit))}]")
    badges = [f":blue-badge[{card.decides}]"] if card.decides else []
    if card.action:
        by = "as pinned" if card.is_pinned else "by its own score"
        badges.append(f":{COLOURS[card.action]}-badge[{card.action} {by}]")
    last = " ".join([*badges, f":small[:gray[{plain(card.found)}]]" if card.found else ""])
    return "  \n".join(filter(None, [*lines, last.strip()]))


def _grade(card: ChunkCard) -> str:
    if card.ungraded:
        return f":orange[:material/warning: {plain(card.ungraded)}]"
    questions = {CALLED[name]: f": {question}" for name, question in QUESTIONS.items()}
    message = [f"**{one.text}** {one.name}{questions.get(one.name, '')}" for one in card.scores]
    return " · ".join([*message, plain(card.reason)] if card.reason else message)


def _draw_actions(card: ChunkCard, key: str, actions: CardActions | None) -> None:
    passage, grade = card.passage, card.grade
    buttons = []
    if actions:
        buttons.append(("Drop", "remove_circle", actions.on_drop, "As if it had never been found."))
        pin = "Unpin" if card.is_pinned else "Pin"
        buttons.append((pin, "push_pin", actions.on_pin, "As if it had been graded 1.00."))
        if passage.origin is Origin.CORPUS:
            buttons.append(("Show in the document", "find_in_page", actions.on_place, ""))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for label, icon, act, effect in buttons:
            name = f":material/{icon}:"
            st.button(label, f"{icon}_{key}", effect or None, act, (passage.id,), icon=name, type="tertiary")
        if grade and (grade.raw or grade.parts):
            with st.popover("Evaluator's record", type="tertiary", icon=":material/data_object:"):
                if grade.parts:
                    st.markdown("  \n".join(f"{plain(name)}: **{value:.2f}**" for name, value in grade.parts))
                if grade.raw is not None:
                    st.caption("The raw reply, as it came:")
                    st.code(grade.raw or "(empty)", language=None, wrap_lines=True)
        if actions and actions.feedback:
            actions.feedback(passage)
