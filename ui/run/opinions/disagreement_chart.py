"""The picture of a disagreement: for each passage the two scores, and the gap between them."""

from __future__ import annotations

import plotly.graph_objects as go

from crag_core.base.text.display import shortened
from crag_core.base.types import Grade
from crag_core.trace.opinions import Disagreement
from crag_core.view.run_view import evaluator_name
from ui.run.passages.sentence_table import chart_text

_ROW = 26  # pixels
_MAIN, _OTHER, _APART = "#1d7cc4", "#9a5fc0", "#d08a1d"


def figure(found: Disagreement, names: dict[str, str]) -> go.Figure:
    """A line from score to score for each passage, dashed where the bands differ too."""
    rows = [row for row in found.rows if row.gap is not None]
    figure = go.Figure()
    for at, row in enumerate(rows):
        ends = [grade.score for grade in row.grades if grade]
        dash, colour = ("dash", _APART) if row.is_apart else ("solid", "gray")
        figure.add_shape(
            type="line", x0=ends[0], x1=ends[1], y0=at, y1=at, line={"color": colour, "width": 2, "dash": dash}
        )
    for which, (verdict, colour, symbol) in enumerate(
        ((found.main, _MAIN, "circle"), (found.other, _OTHER, "diamond"))
    ):
        grades = [row.grades[which] for row in rows]
        figure.add_scatter(
            x=[grade.score if grade else None for grade in grades],
            y=list(range(len(rows))),
            mode="markers",
            marker={"size": 11, "symbol": symbol, "color": colour},
            name=chart_text(evaluator_name(verdict.evaluator, verdict.writer)),
            hovertext=[
                chart_text(_hover(names[row.passage.id], grade)) for row, grade in zip(rows, grades, strict=True)
            ],
            hoverinfo="text",
        )
    figure.update_xaxes(range=[-0.02, 1.02], dtick=0.1, zeroline=False, fixedrange=True)
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[chart_text(names[row.passage.id]) for row in rows],
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


def _hover(name: str, grade: Grade | None) -> str:
    score = f"{grade.score:.2f}" if grade and grade.score is not None else "not graded"
    reason = f" · {shortened(grade.reason, 120)}" if grade and grade.reason else ""
    return f"{score} · {name}{reason}"
