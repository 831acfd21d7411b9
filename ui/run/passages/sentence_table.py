"""Every sentence of a run on one picture and in one table: its score, the cut-off, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st

from crag_core.base.text.display import clean, counted, shortened
from crag_core.base.types import Origin, StripVerdict
from crag_core.view.chunk_cards import chunk_cards, snippet_cards
from crag_core.view.run_view import RunView
from crag_core.view.sentences import deciding_cutoff
from ui.text import chart_text, plain

_ROW = 34  # pixels
_SPREAD = 0.32
"""How far above and below the middle of its passage's row the first and the last sentence stand."""
_KEPT, _STRUCK = "#2c9a63", "#7a8794"


@dataclass(frozen=True)
class _Line:
    """The sentences of one passage in order, `name`d as its card is."""

    name: str
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
        st.dataframe(_table(lines), hide_index=True, key="strips_table", alt="Every sentence with score and verdict")


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
    message.append(f"Above the cut-off {cutoff:.2f}: {len(above)}.")
    others = Counter(verdict.reason for verdict in above if not verdict.kept)
    message += [f"{count} of them struck out all the same: {reason}." for reason, count in others.most_common(2)]
    return " ".join(message)


def _lines(view: RunView) -> tuple[_Line, ...]:
    cards = (*chunk_cards(view), *snippet_cards(view))
    return tuple(_Line(card.label.short, card.verdicts) for card in cards if card.verdicts)


def _figure(lines: Sequence[_Line], cutoff: float | None) -> go.Figure:
    figure = go.Figure([_points(lines, kept) for kept in (True, False)])
    if cutoff is not None:
        figure.add_vline(
            cutoff, line_width=2, line_dash="dot", line_color="gray", annotation_text=f"cut-off {cutoff:.2f}",
            annotation_position="top", annotation_font_size=12,
        )  # fmt: skip
    figure.update_xaxes(range=[-0.02, 1.04], dtick=0.1, zeroline=False, fixedrange=True, title="score of the sentence")
    figure.update_yaxes(
        tickvals=list(range(len(lines))), ticktext=[chart_text(line.name) for line in lines],
        range=[len(lines) - 0.5, -0.5], zeroline=False, fixedrange=True,
    )  # fmt: skip
    figure.update_layout(
        height=_ROW * len(lines) + 110,
        margin={"l": 8, "r": 8, "t": 44, "b": 44},
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 1, "xanchor": "right"},
        hovermode="closest",
    )
    return figure


def _points(lines: Sequence[_Line], kept: bool) -> go.Scatter:
    """One mark a sentence, in the row of its passage; from the top of the row to its bottom in the order of reading."""
    chosen = [
        (row + _place(at, len(line.verdicts)), verdict)
        for row, line in enumerate(lines)
        for at, verdict in enumerate(line.verdicts)
        if verdict.kept is kept
    ]
    return go.Scatter(
        x=[verdict.strip.score or 0.0 for _, verdict in chosen],
        y=[place for place, _ in chosen],
        mode="markers",
        marker={
            "size": 9,
            "symbol": [_symbol(verdict) for _, verdict in chosen],
            "color": _KEPT if kept else _STRUCK,
            "line": {"width": 1.5},
        },
        hovertext=[_hover(verdict) for _, verdict in chosen],
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


def _hover(verdict: StripVerdict) -> str:
    score = "not graded" if verdict.strip.score is None else f"{verdict.strip.score:.2f}"
    reason = "" if verdict.kept else f" · {verdict.reason}"
    return chart_text(f"{score}{reason} · {shortened(clean(verdict.strip.text), 80)}")


def _table(lines: Sequence[_Line]) -> list[dict[str, object]]:
    return [
        {
            "passage": line.name,
            "sentence": clean(verdict.strip.text),
            "score": verdict.strip.score,
            "verdict": "kept" if verdict.kept else "struck out",
            "reason": "" if verdict.kept else verdict.reason,
        }
        for line in lines
        for verdict in line.verdicts
    ]
