"""The Plotly charts of the Tune page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go

from crag_core.base.text.display import clean
from crag_core.experiments.statistics.curves import Histogram, PrecisionRecall, RiskCoverage, Roc
from crag_core.experiments.statistics.reliability import Bin
from crag_core.experiments.thresholds.threshold_board import Array

GREEN, ORANGE, RED, BLUE, GRAY = "#2e9b63", "#d98a1f", "#d0544b", "#3f88c5", "#8794a1"
_SCALE = [[0.0, "#2e9b63"], [0.35, "#e2c25b"], [1.0, "#c8463d"]]
_MARGIN = {"l": 8, "r": 8, "t": 28, "b": 8}


@dataclass(frozen=True)
class Point:
    """Thresholds to be shown in a picture under a name."""

    name: str
    lower: float
    upper: float
    symbol: str
    colour: str


def histogram(found: Histogram, lines: Sequence[tuple[str, float]], title: str) -> go.Figure:
    """Both kinds mirrored at the axis, with the thresholds as lines."""
    middles = (found.edges[:-1] + found.edges[1:]) / 2
    width = float(found.edges[1] - found.edges[0]) * 0.94
    figure = _figure(260)
    for name, counts, colour, sign in (
        ("answerable", found.positive, GREEN, 1),
        ("not answerable", found.negative, RED, -1),
    ):
        figure.add_bar(
            x=middles, y=sign * counts, width=width, name=name, marker_color=colour, customdata=counts,
            hovertemplate=f"%{{customdata}} {name}<br>score about %{{x:.3f}}<extra></extra>",
        )  # fmt: skip
    top = float(max(found.positive.max(initial=1), found.negative.max(initial=1)))
    for name, at in lines:
        figure.add_vline(x=at, line={"color": BLUE, "width": 2, "dash": "dot"})
        figure.add_annotation(
            x=at,
            y=top,
            text=f"{name} {at:.3f}",
            showarrow=False,
            yshift=12,
            font={"color": BLUE, "size": 13},
            xanchor="right" if name == "lower" else "left",
            xshift=-5 if name == "lower" else 5,
        )
    figure.update_layout(barmode="relative", bargap=0)
    figure.update_xaxes(title=title, range=[0, 1])
    figure.update_yaxes(title="questions", range=[-top * 1.1, top * 1.2], tickformat=",d", showticklabels=False)
    return figure


def roc(found: Roc, at: tuple[float, float] | None) -> go.Figure:
    figure = _figure(300)
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line={"color": GRAY, "dash": "dot"}, showlegend=False)
    figure.add_scatter(
        x=found.false_positive_rate, y=found.true_positive_rate, mode="lines", line={"color": BLUE, "width": 3},
        name="ROC", customdata=found.thresholds, fill="tozeroy", fillcolor="rgba(63,136,197,0.12)",
        hovertemplate="upper %{customdata:.3f}<br>%{y:.1%} of the answerable,<br>%{x:.1%} of the others<extra></extra>",
    )  # fmt: skip
    if at is not None:
        figure.add_scatter(x=[at[0]], y=[at[1]], **_spot("your upper"))
    figure.update_xaxes(title="unanswerable taken", tickformat=".0%", range=[0, 1])
    figure.update_yaxes(title="answerable taken", tickformat=".0%", range=[0, 1.01])
    return figure


def precision_recall(found: PrecisionRecall, share: float) -> go.Figure:
    """`share` of all questions is answerable: the precision of a score that knows nothing."""
    figure = _figure(300)
    figure.add_hline(y=share, line={"color": GRAY, "dash": "dot"})
    figure.add_scatter(
        x=found.recall, y=found.precision, mode="lines", line={"color": BLUE, "width": 3}, name="precision",
        hovertemplate="%{y:.1%} of those taken are answerable,<br>%{x:.1%} of the answerable are taken<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title="recall", tickformat=".0%", range=[0, 1])
    figure.update_yaxes(title="precision", tickformat=".0%", range=[0, 1.01])
    return figure


def risk_coverage(found: RiskCoverage, at: tuple[float, float] | None) -> go.Figure:
    figure = _figure(300)
    figure.add_scatter(
        x=found.coverage, y=found.risk, mode="lines", line={"color": BLUE, "width": 3}, name="risk",
        customdata=found.thresholds,
        hovertemplate="answered from %{customdata:.3f} on:<br>%{x:.1%} of all, %{y:.1%} of them wrong<extra></extra>",
    )  # fmt: skip
    if at is not None:
        figure.add_scatter(x=[at[0]], y=[at[1]], **_spot("your upper"))
    figure.update_xaxes(title="coverage: answered from the documents", tickformat=".0%", range=[0, 1])
    figure.update_yaxes(title="risk: not answerable", tickformat=".0%", rangemode="tozero")
    return figure


def reliability(rows: Sequence[Bin], title: str) -> go.Figure:
    figure = _figure(300)
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line={"color": GRAY, "dash": "dot"}, showlegend=False)
    seen = [(row.mean, row.share, row.count) for row in rows if row.mean is not None and row.share is not None]
    values = [share.value for _, share, _ in seen]
    figure.add_scatter(
        x=[mean for mean, _, _ in seen], y=values, mode="markers+lines", line={"color": BLUE},
        marker={"size": [7 + 15 * (count / max(row.count for row in rows)) ** 0.5 for _, _, count in seen]},
        error_y={
            "type": "data", "symmetric": False, "color": GRAY,
            "array": [share.high - share.value for _, share, _ in seen],
            "arrayminus": [share.value - share.low for _, share, _ in seen],
        },
        customdata=[count for _, _, count in seen], name="bins",
        hovertemplate="%{customdata} questions scored about %{x:.2f}:<br>%{y:.1%} answerable<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title=title, range=[0, 1])
    figure.update_yaxes(title="share that is answerable", tickformat=".0%", range=[0, 1.02])
    return figure


def heat_map(axis: Array, costs: Array, plateau: Array | None, points: Sequence[Point], what: str) -> go.Figure:
    """Lower against upper; each cell can be clicked: its `customdata` is (lower, upper)."""
    figure = _figure(470)
    figure.add_heatmap(
        x=axis, y=axis, z=costs.T, colorscale=_SCALE, hoverinfo="skip", colorbar={"title": what, "thickness": 12}
    )
    if plateau is not None:
        for line in outline(plateau, axis):
            figure.add_scatter(
                x=[x for x, _ in line], y=[y for _, y in line], mode="lines", hoverinfo="skip",
                line={"color": "#ffffff", "width": 2.5}, showlegend=False,
            )  # fmt: skip
    cells = [(float(lower), float(upper)) for lower in axis for upper in axis if lower <= upper]
    places = {float(value): place for place, value in enumerate(axis)}
    figure.add_scatter(
        x=[lower for lower, _ in cells], y=[upper for _, upper in cells], mode="markers", showlegend=False,
        marker={"symbol": "square", "size": 9, "opacity": 0.0}, customdata=cells, name="cells",
        text=[_describe(float(costs[places[lower], places[upper]])) for lower, upper in cells],
        hovertemplate=f"lower %{{x:.3f}}, upper %{{y:.3f}}<br>{what} %{{text}}<extra></extra>",
        selected={"marker": {"opacity": 0.0}}, unselected={"marker": {"opacity": 0.0}},
    )  # fmt: skip
    for point in points:
        called = escape(clean(point.name)).replace("%", "&#37;")  # Plotly reads some HTML, and what follows a %
        figure.add_scatter(
            x=[point.lower], y=[point.upper], mode="markers", name=f"{called} {point.lower:.3f}, {point.upper:.3f}",
            marker={"symbol": point.symbol, "size": 15, "color": point.colour, "line": {"color": "white", "width": 2}},
            hovertemplate=f"{called}<br>lower %{{x:.3f}}, upper %{{y:.3f}}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(title="lower threshold", range=[-0.02, 1.02])
    figure.update_yaxes(title="upper threshold", range=[-0.02, 1.02])
    figure.update_layout(clickmode="event+select", dragmode=False)
    return figure


def _describe(value: float) -> str:
    return "–, the limit is not kept" if np.isnan(value) else f"{value:.3f}"


def outline(cells: Array, axis: Array) -> list[list[tuple[float, float]]]:
    """The border of `cells` (lowers, uppers) as pieces of lines, half a step around them."""
    half = float(axis[1] - axis[0]) / 2 if len(axis) > 1 else 0.5
    padded, found = np.pad(cells, 1), []
    for i, j in np.argwhere(cells):
        x, y = float(axis[i]), float(axis[j])
        for di, dj, line in (
            (-1, 0, ((-half, -half), (-half, half))),
            (1, 0, ((half, -half), (half, half))),
            (0, -1, ((-half, -half), (half, -half))),
            (0, 1, ((-half, half), (half, half))),
        ):
            if not padded[i + 1 + di, j + 1 + dj]:
                found.append([(x + dx, y + dy) for dx, dy in line])
    return found


def trade_off(rows: Sequence[tuple[str, float, float]]) -> go.Figure:
    """(name, web rate, confidently wrong) of everything that could be chosen, a line each, the first on top."""
    figure = _figure(60 + 34 * len(rows))
    names = [name for name, _, _ in rows]
    for name, web, wrong in rows:
        figure.add_scatter(
            x=[web, wrong], y=[name, name], mode="lines", line={"color": GRAY, "width": 2}, showlegend=False,
            hoverinfo="skip",
        )  # fmt: skip
    for title, place, colour, symbol in (("web rate", 1, BLUE, "circle"), ("confidently wrong", 2, RED, "diamond")):
        figure.add_scatter(
            x=[row[place] for row in rows], y=names, mode="markers", name=title, cliponaxis=False,
            marker={"size": 13, "color": colour, "symbol": symbol, "line": {"color": "white", "width": 1}},
            hovertemplate=f"%{{y}}: {title} %{{x:.1%}}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(title="share of all questions, and of the unanswerable", tickformat=".0%", range=[-0.02, 1.02])
    figure.update_yaxes(autorange="reversed", ticksuffix="  ")
    return figure


def sentences(kept: Array, answers: Array, cutoffs: Array, now: float) -> go.Figure:
    """Share of the text that every cut-off keeps, against the share of the sentences that answer."""
    figure = _figure(300)
    figure.add_scatter(
        x=kept, y=answers, mode="lines", line={"color": BLUE, "width": 3}, customdata=cutoffs, name="cut-offs",
        hovertemplate="cut-off %{customdata:.2f}: %{x:.1%} of the text,<br>%{y:.1%} of the answers<extra></extra>",
    )  # fmt: skip
    at = int(np.abs(cutoffs - now).argmin())
    figure.add_scatter(x=[kept[at]], y=[answers[at]], **_spot(f"your cut-off {now:.2f}"))
    figure.update_xaxes(title="share of the text that is kept", tickformat=".0%", range=[0, 1])
    figure.update_yaxes(title="answers kept", tickformat=".0%", range=[0, 1.02])
    return figure


def _spot(name: str) -> dict[str, object]:
    return {
        "mode": "markers",
        "name": name,
        "marker": {"size": 13, "color": ORANGE, "line": {"color": "white", "width": 2}},
        "hovertemplate": f"{name}<extra></extra>",
    }


def _figure(height: int) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        height=height, margin=_MARGIN, hovermode="closest",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
    )  # fmt: skip
    return figure
