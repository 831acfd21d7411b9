"""The Plotly charts of the Tune page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go

from crag_core.base.text.display import clean, readable
from crag_core.experiments.thresholds.threshold_board import Array

GREEN, ORANGE, RED, BLUE, GRAY = "#2e9b63", "#d98a1f", "#d0544b", "#3f88c5", "#8794a1"
_COST_SCALE = [[0.0, "#2e9b63"], [0.35, "#e2c25b"], [1.0, "#c8463d"]]
_BINS = np.linspace(0.0, 1.0, 21)


@dataclass(frozen=True)
class Point:
    name: str
    lower: float
    upper: float
    symbol: str
    colour: str


def histogram(scores: Array, answerable: Array, lines: Sequence[tuple[str, float]], title: str) -> go.Figure:
    """Answerable questions above the axis, the others below, with the thresholds as lines."""
    figure, top = _figure(260, title, "questions"), 1
    for name, kind, colour, sign in (
        ("answerable", answerable, GREEN, 1),
        ("not answerable", ~answerable, RED, -1),
    ):
        counts = np.histogram(scores[kind & ~np.isnan(scores)], _BINS)[0]
        top = max(top, int(counts.max()))
        figure.add_bar(
            x=(_BINS[:-1] + _BINS[1:]) / 2, y=sign * counts, width=0.047, name=name, marker_color=colour,
            customdata=counts, hovertemplate=f"%{{customdata}} {name}<br>score about %{{x:.2f}}<extra></extra>",
        )  # fmt: skip
    for name, at in lines:
        is_left = (len(lines) > 1 and name == "lower") or at > 0.6  # of its line; else it would be cut off
        figure.add_vline(x=at, line={"color": BLUE, "width": 2, "dash": "dot"})
        figure.add_annotation(
            x=at, y=top, text=f"{name} {readable(at)[0]}", showarrow=False, font={"color": BLUE, "size": 13},
            yshift=26 if is_left and name != "lower" and len(lines) > 1 else 12,
            xanchor="right" if is_left else "left", xshift=-5 if is_left else 5,
        )  # fmt: skip
    figure.update_layout(barmode="relative", bargap=0)
    figure.update_yaxes(range=[-top * 1.1, top * 1.2], tickformat=",d", showticklabels=False)
    return figure


def heat_map(
    axis: Array,
    costs: Array,
    possible: Array,
    plateau: Array | None,
    points: Sequence[Point],
    what: str,
    names: tuple[str, str] = ("lower", "upper"),
) -> go.Figure:
    """Lower against upper; each `possible` cell can be clicked: its `customdata` is (lower, upper)."""
    figure = _figure(470, *names)
    figure.add_heatmap(
        x=axis, y=axis, z=costs.T, colorscale=_COST_SCALE, hoverinfo="skip", colorbar={"title": what, "thickness": 12}
    )
    if plateau is not None:
        step = axis[1] - axis[0]
        wider = np.concatenate(([axis[0] - step], axis, [axis[-1] + step]))  # so that the line closes at an edge
        figure.add_contour(
            x=wider, y=wider, z=np.pad(plateau.T.astype(float), 1), name="plateau", hoverinfo="skip", showscale=False,
            showlegend=False, contours={"start": 0.5, "end": 0.5, "size": 1, "coloring": "none"},
            line={"color": "#ffffff", "width": 2.5, "smoothing": 0},
        )  # fmt: skip
    places = np.argwhere(possible)
    cells = axis[places]  # the browser gives back lists, but no rows of an array
    figure.add_scatter(
        x=cells[:, 0], y=cells[:, 1], mode="markers", showlegend=False, name="cells", customdata=cells.tolist(),
        marker={"symbol": "square", "size": 9, "opacity": 0.0},
        text=["–, the limit is not kept" if np.isnan(cost) else f"{cost:.2f}" for cost in costs[tuple(places.T)]],
        hovertemplate=f"{names[0]} %{{x:.2f}}, {names[1]} %{{y:.2f}}<br>{what} %{{text}}<extra></extra>",
        selected={"marker": {"opacity": 0.0}}, unselected={"marker": {"opacity": 0.0}},
    )  # fmt: skip
    for point in points:
        called = escape(clean(point.name)).replace("%", "&#37;")  # Plotly reads some HTML, and what follows a %
        low, high = readable(point.lower, point.upper)
        figure.add_scatter(
            x=[point.lower], y=[point.upper], mode="markers", name=f"{called} {low}, {high}",
            marker={"symbol": point.symbol, "size": 15, "color": point.colour, "line": {"color": "white", "width": 2}},
            hovertemplate=f"{called}<br>{names[0]} {low}, {names[1]} {high}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(range=[-0.02, 1.02])
    figure.update_yaxes(range=[-0.02, 1.02])
    figure.update_layout(clickmode="event+select", dragmode=False)
    return figure


def _figure(height: int, x: str, y: str = "") -> go.Figure:
    return go.Figure(
        layout={
            "height": height, "margin": {"l": 8, "r": 8, "t": 28, "b": 8}, "hovermode": "closest",
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
            "xaxis": {"title": x, "range": [0, 1]}, "yaxis": {"title": y},
        }
    )  # fmt: skip
