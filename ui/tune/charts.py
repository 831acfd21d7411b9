"""The Plotly charts of the Tune page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go

from crag_core.base.text.display import clean, readable
from crag_core.experiments.statistics.calibration import Bin
from crag_core.experiments.statistics.curves import Histogram, RiskCoverage
from crag_core.experiments.thresholds.threshold_board import Array

GREEN, ORANGE, RED, BLUE, GRAY = "#2e9b63", "#d98a1f", "#d0544b", "#3f88c5", "#8794a1"
_COST_SCALE = [[0.0, "#2e9b63"], [0.35, "#e2c25b"], [1.0, "#c8463d"]]
_DOTTED = {"color": GRAY, "dash": "dot"}


@dataclass(frozen=True)
class Point:
    """A named pair of thresholds on the heat map."""

    name: str
    lower: float
    upper: float
    symbol: str
    colour: str


def histogram(found: Histogram, lines: Sequence[tuple[str, float]], title: str) -> go.Figure:
    """Answerable questions above the axis, the others below, with the thresholds as lines."""
    figure = _figure(260)
    for name, counts, colour, sign in (
        ("answerable", found.positive, GREEN, 1),
        ("not answerable", found.negative, RED, -1),
    ):
        figure.add_bar(
            x=(found.edges[:-1] + found.edges[1:]) / 2, y=sign * counts, width=float(np.diff(found.edges)[0]) * 0.94,
            name=name, marker_color=colour, customdata=counts,
            hovertemplate=f"%{{customdata}} {name}<br>score about %{{x:.2f}}<extra></extra>",
        )  # fmt: skip
    top = float(max(found.positive.max(initial=1), found.negative.max(initial=1)))
    for name, at in lines:
        is_left = name == "lower" or at > 0.6  # of its line; else it would be cut off
        over = 26 if is_left and name != "lower" and len(lines) > 1 else 12
        figure.add_vline(x=at, line={"color": BLUE, "width": 2, "dash": "dot"})
        figure.add_annotation(
            x=at, y=top, text=f"{name} {readable(at)[0]}", showarrow=False, yshift=over,
            xanchor="right" if is_left else "left", xshift=-5 if is_left else 5,
            font={"color": BLUE, "size": 13},
        )  # fmt: skip
    figure.update_layout(barmode="relative", bargap=0)
    figure.update_xaxes(title=title, range=[0, 1])
    figure.update_yaxes(title="questions", range=[-top * 1.1, top * 1.2], tickformat=",d", showticklabels=False)
    return figure


def roc(false_rate: Array, true_rate: Array, thresholds: Array, at: tuple[float, float]) -> go.Figure:
    figure = _curve(
        false_rate, true_rate, ("unanswerable taken", "answerable taken"), "ROC",
        "upper %{customdata:.2f}<br>%{y:.1%} of the answerable,<br>%{x:.1%} of the others", thresholds,
    )  # fmt: skip
    figure.update_traces(fill="tozeroy", fillcolor="rgba(63,136,197,0.12)")
    _add_diagonal(figure)
    _add_spot(figure, at, "your upper")
    return figure


def precision_recall(precision: Array, recall: Array, share: float) -> go.Figure:
    """`share` of all questions is answerable: the precision of a score that knows nothing."""
    figure = _curve(
        recall, precision, ("recall", "precision"), "precision",
        "%{y:.1%} of those taken are answerable,<br>%{x:.1%} of the answerable are taken",
    )  # fmt: skip
    figure.add_hline(y=share, line=_DOTTED, layer="below")
    return figure


def risk_coverage(found: RiskCoverage, at: tuple[float, float]) -> go.Figure:
    figure = _curve(
        found.coverage, found.risk, ("coverage: answered from the documents", "risk: not answerable"), "risk",
        "answered from %{customdata:.2f} on:<br>%{x:.1%} of all, %{y:.1%} of them wrong", found.thresholds,
    )  # fmt: skip
    figure.update_yaxes(range=None, rangemode="tozero")
    _add_spot(figure, at, "your upper")
    return figure


def sentences(kept: Array, answers: Array, cutoffs: Array, now: float) -> go.Figure:
    """Share of the text that every cut-off keeps, against the share of the sentences that answer."""
    figure = _curve(
        kept, answers, ("share of the text that is kept", "answers kept"), "cut-offs",
        "cut-off %{customdata:.2f}: %{x:.1%} of the text,<br>%{y:.1%} of the answers", cutoffs,
    )  # fmt: skip
    at = int(np.abs(cutoffs - now).argmin())
    _add_spot(figure, (kept[at], answers[at]), f"your cut-off {readable(now)[0]}")
    return figure


def reliability(rows: Sequence[Bin], title: str) -> go.Figure:
    """Larger points stand for bins with more questions."""
    seen = [(row.mean, row.share, row.count) for row in rows if row.mean is not None and row.share is not None]
    most = max(row.count for row in rows)
    figure = _figure(300)
    figure.add_scatter(
        x=[mean for mean, _, _ in seen], y=[share.value for _, share, _ in seen], mode="markers+lines", name="bins",
        line={"color": BLUE}, marker={"size": [7 + 15 * (count / most) ** 0.5 for _, _, count in seen]},
        error_y={
            "type": "data", "symmetric": False, "color": GRAY,
            "array": [share.high - share.value for _, share, _ in seen],
            "arrayminus": [share.value - share.low for _, share, _ in seen],
        },
        customdata=[count for _, _, count in seen],
        hovertemplate="%{customdata} questions scored about %{x:.2f}:<br>%{y:.1%} answerable<extra></extra>",
    )  # fmt: skip
    _add_diagonal(figure)
    figure.update_xaxes(title=title, range=[0, 1])
    figure.update_yaxes(title="share that is answerable", tickformat=".0%", range=[0, 1.02])
    return figure


def heat_map(
    axis: Array, costs: Array, possible: Array, plateau: Array | None, points: Sequence[Point], what: str
) -> go.Figure:
    """Lower against upper; each `possible` cell can be clicked: its `customdata` is (lower, upper)."""
    figure = _figure(470)
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
    places = [(int(i), int(j)) for i, j in np.argwhere(possible)]
    figure.add_scatter(
        x=[axis[i] for i, _ in places], y=[axis[j] for _, j in places], mode="markers", showlegend=False, name="cells",
        marker={"symbol": "square", "size": 9, "opacity": 0.0}, customdata=[(axis[i], axis[j]) for i, j in places],
        text=["–, the limit is not kept" if np.isnan(costs[place]) else f"{costs[place]:.2f}" for place in places],
        hovertemplate=f"lower %{{x:.2f}}, upper %{{y:.2f}}<br>{what} %{{text}}<extra></extra>",
        selected={"marker": {"opacity": 0.0}}, unselected={"marker": {"opacity": 0.0}},
    )  # fmt: skip
    for point in points:
        called = escape(clean(point.name)).replace("%", "&#37;")  # Plotly reads some HTML, and what follows a %
        low, high = readable(point.lower, point.upper)
        figure.add_scatter(
            x=[point.lower], y=[point.upper], mode="markers", name=f"{called} {low}, {high}",
            marker={"symbol": point.symbol, "size": 15, "color": point.colour, "line": {"color": "white", "width": 2}},
            hovertemplate=f"{called}<br>lower {low}, upper {high}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(title="lower threshold", range=[-0.02, 1.02])
    figure.update_yaxes(title="upper threshold", range=[-0.02, 1.02])
    figure.update_layout(clickmode="event+select", dragmode=False)
    return figure


def trade_off(rows: Sequence[tuple[str, float, float, float]]) -> go.Figure:
    """`rows` are (name, answered, confidently wrong, web rate), the first on top."""
    figure = _figure(80 + 34 * len(rows))
    names = [name for name, *_ in rows]
    for name, *shares in rows:
        figure.add_scatter(
            x=[min(shares), max(shares)], y=[name, name], mode="lines", line={"color": GRAY, "width": 2},
            showlegend=False, hoverinfo="skip",
        )  # fmt: skip
    for title, place, colour, symbol in (
        ("answered", 1, GREEN, "square"),
        ("confidently wrong", 2, RED, "diamond"),
        ("web rate", 3, BLUE, "circle"),
    ):
        figure.add_scatter(
            x=[row[place] for row in rows], y=names, mode="markers", name=title, cliponaxis=False,
            marker={"size": 13, "color": colour, "symbol": symbol, "line": {"color": "white", "width": 1}},
            hovertemplate=f"%{{y}}: {title} %{{x:.1%}}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(title="share of the questions", tickformat=".0%", range=[-0.02, 1.02])
    figure.update_yaxes(autorange="reversed", ticksuffix="  ")
    return figure


def _curve(
    x: Array, y: Array, titles: tuple[str, str], name: str, hover: str, customdata: Array | None = None
) -> go.Figure:
    """A line between two shares, in percent."""
    figure = _figure(300)
    figure.add_scatter(
        x=x, y=y, mode="lines", line={"color": BLUE, "width": 3}, name=name, customdata=customdata,
        hovertemplate=f"{hover}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title=titles[0], tickformat=".0%", range=[0, 1])
    figure.update_yaxes(title=titles[1], tickformat=".0%", range=[0, 1.01])
    return figure


def _add_diagonal(figure: go.Figure) -> None:
    figure.add_shape(type="line", x0=0, y0=0, x1=1, y1=1, line=_DOTTED, layer="below")


def _add_spot(figure: go.Figure, at: tuple[float, float], name: str) -> None:
    figure.add_scatter(
        x=[at[0]], y=[at[1]], mode="markers", name=name, hovertemplate=f"{name}<extra></extra>",
        marker={"size": 13, "color": ORANGE, "line": {"color": "white", "width": 2}},
    )  # fmt: skip


def _figure(height: int) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        height=height, margin={"l": 8, "r": 8, "t": 28, "b": 8}, hovermode="closest",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
    )  # fmt: skip
    return figure
