"""The picture of a disagreement: for each passage the two scores, and the gap between them."""

from __future__ import annotations

import plotly.graph_objects as go

from crag_core.base.text.display import shortened
from crag_core.view.opinions import Comparison, OpinionRow
from ui.run.passages.sentence_table import card_name, chart_text

_ROW = 26  # pixels
_MAIN, _OTHER, _APART = "#1d7cc4", "#9a5fc0", "#d08a1d"


def figure(found: Comparison) -> go.Figure:
    """A line from score to score for each passage, dashed where the bands differ too."""
    rows = [row for row in found.rows if all(grade and grade.score is not None for grade in row.grades)]
    figure = go.Figure()
    for at, row in enumerate(rows):
        ends = [grade.score for grade in row.grades if grade]
        dash, colour = ("dash", _APART) if row.sign else ("solid", "gray")
        figure.add_shape(
            type="line", x0=ends[0], x1=ends[1], y0=at, y1=at, line={"color": colour, "width": 2, "dash": dash}
        )
    for which, (side, colour, symbol) in enumerate(
        zip(found.sides, (_MAIN, _OTHER), ("circle", "diamond"), strict=True)
    ):
        figure.add_scatter(
            x=[grade.score if (grade := row.grades[which]) else None for row in rows],
            y=list(range(len(rows))),
            mode="markers",
            marker={"size": 11, "symbol": symbol, "color": colour},
            name=chart_text(side.name),
            hovertext=[chart_text(_hover(row, which)) for row in rows],
            hoverinfo="text",
        )
    figure.update_xaxes(range=[-0.02, 1.02], dtick=0.1, zeroline=False, fixedrange=True)
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[chart_text(card_name(row.label)) for row in rows],
        range=[len(rows) - 0.5, -0.5],
        zeroline=False,
        fixedrange=True,
    )
    figure.update_layout(
        height=_ROW * len(rows) + 80,
        margin={"l": 8, "r": 8, "t": 34, "b": 30},
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 1, "xanchor": "right"},
        hovermode="closest",
    )
    return figure


def _hover(row: OpinionRow, which: int) -> str:
    cell = row.cells[which]
    reason = f" · {shortened(cell.reason, 120)}" if cell.reason else ""
    return f"{cell.score} · {card_name(row.label)}{reason}"
