"""Chunks and web results as cards, sentence by sentence, and every sentence on one picture and in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.text.display import counted, readable, sentence, shortened
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import StripVerdict
from crag_core.base.types.passages import Origin, Passage
from crag_core.base.types.web import WebOutcome
from crag_core.view.chunk_cards import ChunkCard, chunk_cards, opened_first, snippet_cards
from crag_core.view.path.stages import describe_page, describe_web
from crag_core.view.run_view import RunView
from crag_core.view.score_words import QUESTIONS
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
    """One line, and below it, when open, the chunk with its sentences; a dropped one is a line with the way back.

    `is_open` is how it starts.
    """
    key, rank = f"{run_id}_{card.label.anchor}", card.label.number
    if card.is_dropped:
        _draw_dropped(card, key, actions)
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
    questions = {name: f": {question}" for name, question in QUESTIONS.items()}
    message = [f"**{one.text}** {one.name}{questions.get(one.name, '')}" for one in card.scores]
    return " · ".join([*message, plain(card.reason)] if card.reason else message)


def _draw_actions(card: ChunkCard, key: str, actions: CardActions | None) -> None:
    passage, grade = card.passage, card.grade
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if actions:
            for label, icon, act, effect in (
                ("Drop", "remove_circle", actions.on_drop, "As if it had never been found."),
                ("Unpin" if card.is_pinned else "Pin", "push_pin", actions.on_pin, "As if it had been graded 1.00."),
                ("Show in the document", "find_in_page", actions.on_place, None),
            ):
                if act is not actions.on_place or passage.origin is Origin.CORPUS:
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
            st.markdown("  \n".join(f"{plain(name)}: **{value:.2f}**" for name, value in grade.parts))
        if grade.raw is not None:
            st.caption("The raw reply, as it came:")
            st.code(grade.raw or "(empty)", language=None, wrap_lines=True)


def _draw_dropped(card: ChunkCard, key: str, actions: CardActions | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        name = plain(str(card.label.name))
        st.markdown(f":gray[{card.label.number} · ~~{name}~~ · **dropped by you**]", width="content")
        if actions:
            act, args = actions.on_drop, (card.passage.id,)
            st.button("Put back", f"back_{key}", icon=":material/undo:", type="tertiary", on_click=act, args=args)


# --- every sentence against the cut-off -------------------------------------------------------------------------------


_ROW = 34  # pixels
_SPREAD = 0.32
"""How far above and below the middle of its passage's row the first and the last sentence stand."""
_KEPT, _STRUCK = "#2c9a63", "#7a8794"


@dataclass(frozen=True)
class _Line:
    """The sentences of one chunk in order, `name`d as its card is."""

    name: str
    passage: Passage
    verdicts: tuple[StripVerdict, ...]


def draw_strips(view: RunView) -> None:
    """Folded at first, and drawn only when it is open."""
    lines = _lines(view)
    if not lines:
        return
    drawer = st.expander(
        "Every sentence against the cut-off", key="strips_drawer", icon=":material/segment:", on_change="rerun"
    )
    if not drawer.open:
        return
    with drawer:
        cutoffs = [deciding_cutoff(view, origin) for origin in (Origin.CORPUS, Origin.WEB)]
        cutoff = next((cutoff for cutoff in cutoffs if cutoff is not None), None)
        st.markdown(plain(describe(lines, cutoff)))
        st.plotly_chart(
            _figure(lines, cutoff),
            config={"displayModeBar": False},
            alt=f"{describe(lines, cutoff)} The table below has the same numbers.",
            key="strips_picture",
        )
        st.dataframe(
            _table(lines),
            hide_index=True,
            column_config={"score": st.column_config.NumberColumn(format=f"%.{_digits(lines, cutoff)}f")},
            key="strips_table",
            alt="Every sentence with score and verdict",
        )


def describe(lines: Sequence[_Line], cutoff: float | None) -> str:
    """How much of the text goes on, and what else than the cut-off strikes out, in words."""
    verdicts = [verdict for line in lines for verdict in line.verdicts]
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


def _lines(view: RunView) -> tuple[_Line, ...]:
    cards = (*chunk_cards(view), *snippet_cards(view))
    return tuple(_Line(card.label.short, card.passage, card.verdicts) for card in cards if card.verdicts)


def _figure(lines: Sequence[_Line], cutoff: float | None) -> go.Figure:
    figure = chart_of_rows([line.name for line in lines], _ROW, title="score of the sentence")
    figure.add_traces([_points(lines, kept, cutoff) for kept in (True, False)])
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
        height=row_height * len(names) + 124,
        margin={"l": 8, "r": 8, "t": 58, "b": 44},
        # At the top of all, above the name of a line that may stand anywhere over the rows.
        legend={"orientation": "h", "yref": "container", "y": 1, "yanchor": "top", "x": 1, "xanchor": "right"},
        hovermode="closest",
    )
    return figure


def _points(lines: Sequence[_Line], kept: bool, cutoff: float | None) -> go.Scatter:
    """One mark a sentence, in the row of its passage; from the top of the row to its bottom in the order of reading."""
    chosen = [
        (row + _place(at, len(line.verdicts)), verdict, line.passage)
        for row, line in enumerate(lines)
        for at, verdict in enumerate(line.verdicts)
        if verdict.kept is kept
    ]
    return go.Scatter(
        x=[verdict.strip.score or 0.0 for _, verdict, _ in chosen],
        y=[place for place, _, _ in chosen],
        mode="markers",
        marker={
            "size": 9,
            "symbol": [_symbol(verdict) for _, verdict, _ in chosen],
            "color": _KEPT if kept else _STRUCK,
            "line": {"width": 1.5},
        },
        hovertext=[_hover(verdict, passage, cutoff) for _, verdict, passage in chosen],
        hoverinfo="text",
        name="kept" if kept else "struck out",
        showlegend=True,
    )


def _symbol(verdict: StripVerdict) -> str:
    """What could not be graded stands at 0, as a cross, since nobody gave it a 0."""
    if verdict.strip.score is None:
        return "x-thin-open"
    return "circle" if verdict.kept else "circle-open"


def _place(at: int, count: int) -> float:
    return 0.0 if count < 2 else _SPREAD * (2 * at / (count - 1) - 1)


def _hover(verdict: StripVerdict, passage: Passage, cutoff: float | None) -> str:
    score = "not graded" if verdict.strip.score is None else score_of(verdict, cutoff)
    reason = "" if verdict.kept else f" · {verdict.reason}"
    return chart_text(f"{score}{reason} · {shortened(shown_text(verdict.strip, passage), 80)}")


def _digits(lines: Sequence[_Line], cutoff: float | None) -> int:
    """The fewest with which no score in the table reads as equal to the cut-off that it is not equal to."""
    said = (score_of(one, cutoff) for line in lines for one in line.verdicts)
    return max(2, *(len(one) - 2 for one in said))


def _table(lines: Sequence[_Line]) -> list[dict[str, object]]:
    return [
        {
            "chunk": line.name,
            "sentence": shown_text(verdict.strip, line.passage),
            "score": verdict.strip.score,
            "verdict": "kept" if verdict.kept else "struck out",
            "reason": "" if verdict.kept else verdict.reason,
        }
        for line in lines
        for verdict in line.verdicts
    ]
