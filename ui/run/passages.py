"""Chunks and web results as cards, sentence by sentence, and every sentence on one picture and in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.text.display import counted, readable, sentence, shortened
from crag_core.base.types.knowledge import StripVerdict
from crag_core.base.types.passages import Origin, Passage
from crag_core.base.types.web import WebOutcome
from crag_core.view.chunk_cards import ChunkCard, chunk_cards, opened_first, snippet_cards
from crag_core.view.path.stages import describe_page, describe_web
from crag_core.view.run_view import RunView
from crag_core.view.score_words import CALLED, QUESTIONS
from crag_core.view.sentences import deciding_cutoff, score_of, shown_text
from ui import PARTS
from ui.run.verdict import COLOURS
from ui.shell.text import chart_text, link, plain

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
        badges.append(f":{COLOURS[card.action]}-badge[{card.action} by its own score]")
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


# --- every sentence against the cut-off -------------------------------------------------------------------------------


_ROW = 34  # pixels
_SPREAD = 0.32
"""How far above and below the middle of its passage's row the first and the last sentence stand."""
_MARKS = {True: ("kept", "#2c9a63", "circle"), False: ("struck out", "#7a8794", "circle-open")}


def draw_strips(view: RunView) -> None:
    """Every sentence on a picture and in a table, folded at first, and drawn only when it is open."""
    cards = [card for card in (*chunk_cards(view), *snippet_cards(view)) if card.verdicts]
    if not cards:
        return
    drawer = st.expander(
        "Every sentence against the cut-off", key="strips_drawer", icon=":material/segment:", on_change="rerun"
    )
    if not drawer.open:
        return
    cutoffs = [deciding_cutoff(view, origin) for origin in (Origin.CORPUS, Origin.WEB)]
    cutoff = next((cutoff for cutoff in cutoffs if cutoff is not None), None)
    rows = [
        {
            "chunk": card.label.short,
            "sentence": shown_text(verdict.strip, card.passage),
            "score": verdict.strip.score,
            "verdict": _MARKS[verdict.kept][0],
            "reason": "" if verdict.kept else verdict.reason,
        }
        for card in cards
        for verdict in card.verdicts
    ]
    # The fewest digits with which no score in the table reads as equal to the cut-off that it is not equal to.
    digits = max(2, *(len(score_of(verdict, cutoff)) - 2 for card in cards for verdict in card.verdicts))
    told = describe([verdict for card in cards for verdict in card.verdicts], cutoff)
    with drawer:
        st.markdown(plain(told))
        st.plotly_chart(
            _figure(cards, cutoff), config={"displayModeBar": False}, key="strips_picture",
            alt=f"{told} The table below has the same numbers.",
        )  # fmt: skip
        st.dataframe(
            rows, hide_index=True, key="strips_table", alt="Every sentence with score and verdict",
            column_config={"score": st.column_config.NumberColumn(format=f"%.{digits}f")},
        )  # fmt: skip


def describe(verdicts: Sequence[StripVerdict], cutoff: float | None) -> str:
    """How much of the text goes on, and what else than the cut-off strikes out, in words."""
    kept = [verdict for verdict in verdicts if verdict.kept]
    length, whole = (sum(len(one.strip.text) for one in some) for some in (kept, verdicts))
    share = f", {length / whole:.0%} of the text" if whole else ""
    message = [f"{len(kept)} of {counted(len(verdicts), 'sentence')} kept{share}."]
    if cutoff is None:
        return f"{message[0]} The cut-off decides nothing here."
    above = [verdict for verdict in verdicts if verdict.strip.score is not None and verdict.strip.score > cutoff]
    message.append(f"Above the cut-off {readable(cutoff)[0]}: {len(above)}.")
    others = Counter(verdict.reason for verdict in above if not verdict.kept)
    message += [f"{count} of them struck out: {reason}." for reason, count in others.most_common(2)]
    return " ".join(message)


def _figure(cards: Sequence[ChunkCard], cutoff: float | None) -> go.Figure:
    figure = chart_of_rows([card.label.short for card in cards], _ROW, title="score of the sentence")
    for kept in (True, False):
        _add_points(figure, cards, kept, cutoff)
    if cutoff is not None:
        figure.add_vline(
            cutoff, line_width=2, line_dash="dot", line_color="gray", annotation_text=f"cut-off {readable(cutoff)[0]}",
            annotation_position="top", annotation_font_size=12,
            annotation_xanchor="left" if cutoff < 0.1 else "right" if cutoff > 0.9 else "center",
        )  # fmt: skip
    return figure


def chart_of_rows(names: Sequence[str], row_height: int, title: str = "") -> go.Figure:
    """An empty chart of scores in 0..1, with a row for each chunk, the first at the top."""
    figure = go.Figure()
    figure.update_xaxes(range=[-0.02, 1.04], dtick=0.2, zeroline=False, fixedrange=True, title=title)
    figure.update_yaxes(
        tickvals=list(range(len(names))), ticktext=[chart_text(name) for name in names],
        range=[len(names) - 0.5, -0.5], zeroline=False, fixedrange=True,
    )  # fmt: skip
    figure.update_layout(
        height=row_height * len(names) + 124, margin={"l": 8, "r": 8, "t": 58, "b": 44}, hovermode="closest",
        # At the top of all, above the name of a line that may stand anywhere over the rows.
        legend={"orientation": "h", "yref": "container", "y": 1, "yanchor": "top", "x": 1, "xanchor": "right"},
    )  # fmt: skip
    return figure


def _add_points(figure: go.Figure, cards: Sequence[ChunkCard], kept: bool, cutoff: float | None) -> None:
    """One mark a sentence, in the row of its chunk; from the top of the row to its bottom in the order of reading.

    What could not be graded stands at 0, as a cross, since nobody gave it a 0.
    """
    chosen = [
        (row + (0.0 if len(card.verdicts) < 2 else _SPREAD * (2 * at / (len(card.verdicts) - 1) - 1)), verdict, card)
        for row, card in enumerate(cards)
        for at, verdict in enumerate(card.verdicts)
        if verdict.kept is kept
    ]
    name, colour, symbol = _MARKS[kept]
    figure.add_scatter(
        x=[verdict.strip.score or 0.0 for _, verdict, _ in chosen], y=[place for place, _, _ in chosen],
        mode="markers", name=name, showlegend=True, hoverinfo="text",
        hovertext=[_hover(verdict, card.passage, cutoff) for _, verdict, card in chosen],
        marker={
            "size": 9, "color": colour, "line": {"width": 1.5},
            "symbol": ["x-thin-open" if one.strip.score is None else symbol for _, one, _ in chosen],
        },
    )  # fmt: skip


def _hover(verdict: StripVerdict, passage: Passage, cutoff: float | None) -> str:
    score = "not graded" if verdict.strip.score is None else score_of(verdict, cutoff)
    reason = "" if verdict.kept else f" · {verdict.reason}"
    return chart_text(f"{score}{reason} · {shortened(shown_text(verdict.strip, passage), 80)}")
