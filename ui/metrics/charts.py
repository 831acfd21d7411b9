"""The Plotly charts of the Metrics page, with targets as lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from crag_core.base.types import Action
from crag_core.observability import trends
from crag_core.observability.trends import Figures
from ui.metrics.metrics_state import width_of
from ui.tune.charts import BLUE, GRAY, GREEN, ORANGE, RED

_VIOLET = "#7a5fc7"
_ACTIONS = {Action.CORRECT: (GREEN, ""), Action.AMBIGUOUS: (ORANGE, "/"), Action.INCORRECT: (RED, "x")}
"""Colour and pattern of the bars; the pattern for those who cannot distinguish the colours."""

Steps = tuple[datetime, ...]


def decisions(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """How many runs took which action."""
    figure = _figure(steps, "runs")
    for action, (colour, pattern) in _ACTIONS.items():
        shares = [one.of(action) for one in found]
        _add_bars(
            figure, steps, [share.hits for share in shares], action, colour, pattern,
            hovertemplate=f"%{{y}} {action} (%{{customdata}})<extra></extra>",
            customdata=["–" if share.value is None else f"{share.value:.0%}" for share in shares],
        )  # fmt: skip
    return figure


def rates(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """The rates that have a target, each with its line."""
    figure = _figure(steps, "share of the decided runs")
    for name, shares, target, colour, symbol in (
        ("correct", [one.of(Action.CORRECT) for one in found], trends.CORRECT_TARGET, GREEN, "circle"),
        ("corrected", [one.corrected for one in found], trends.CORRECTED_TARGET, ORANGE, "diamond"),
        ("web", [one.searched for one in found], trends.SEARCHED_TARGET, BLUE, "square"),
        ("correction helped", [one.improved for one in found], trends.IMPROVED_TARGET, _VIOLET, "x"),
    ):
        _add_line(
            figure, steps, [share.value for share in shares], name, colour, symbol,
            customdata=[f"{share.hits} of {share.of}" for share in shares],
            hovertemplate=f"{name} %{{y:.0%}} (%{{customdata}})<extra></extra>",
        )  # fmt: skip
        _add_target(figure, target, f"{name}: {target:.0%}", colour)
    figure.update_yaxes(tickformat=".0%", range=[-0.02, 1.04])
    return figure


def latencies(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """Median and 95th percentile of both paths, in milliseconds on a logarithmic scale."""
    figure = _figure(steps, "milliseconds")
    for name, times, target, colour in (
        ("correct", [one.fast for one in found], trends.FAST_TARGET, GREEN),
        ("corrected", [one.slow for one in found], trends.SLOW_TARGET, ORANGE),
    ):
        for title, values, dash, symbol in (
            ("p50", [one.p50 for one in times], "solid", "circle"),
            ("p95", [one.p95 for one in times], "dot", "triangle-up"),
        ):
            _add_line(
                figure, steps, values, f"{name}, {title}", colour, symbol, line_dash=dash,
                customdata=[one.count for one in times],
                hovertemplate=f"{name}, {title}: %{{y:,.0f}} ms of %{{customdata}} runs<extra></extra>",
            )  # fmt: skip
        # Plotly wants the logarithm for the place of the label, but not for that of the line.
        _add_target(figure, target, f"{name}, p50: {target:.0f} ms", colour, label_at=math.log10(target))
    figure.update_yaxes(type="log", tickformat=",", dtick=1)
    return figure


def costs(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """Tokens as bars, model calls as a line on an axis of its own."""
    figure = _figure(steps, "tokens")
    _add_bars(figure, steps, [one.prompt_tokens for one in found], "prompt tokens", BLUE)
    _add_bars(figure, steps, [one.completion_tokens for one in found], "tokens written", _VIOLET)
    _add_line(
        figure, steps, [one.calls for one in found], "model calls (right)", ORANGE, "diamond", yaxis="y2",
        hovertemplate="%{y:,} model calls<extra></extra>",
    )  # fmt: skip
    figure.update_layout(
        yaxis2={
            "title": "calls", "overlaying": "y", "side": "right", "rangemode": "tozero", "showgrid": False,
            "tickmode": "auto", "tickformat": ",d",
        },
    )  # fmt: skip
    return figure


def grades(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """How many grades came from the cache, how many were new, and how many could not be made."""
    figure = _figure(steps, "grades")
    _add_bars(figure, steps, [one.cached.hits for one in found], "from the cache", BLUE, "/")
    _add_bars(figure, steps, [one.cached.of - one.cached.hits for one in found], "new", GRAY)
    _add_line(
        figure, steps, [one.ungraded.hits or None for one in found], "not graded", RED, "x", mode="markers",
        hovertemplate="%{y:,} not graded<extra></extra>",
    )  # fmt: skip
    return figure


def _middles(steps: Steps) -> list[datetime]:
    # Without a zone, so that the browser shows the visitor's clock as it is.
    return [(start + (end - start) / 2).replace(tzinfo=None) for start, end in pairwise(steps)]


def _add_bars(
    figure: go.Figure, steps: Steps, values: Sequence[int], name: str, colour: str, pattern: str = "", **more: Any
) -> None:
    figure.add_bar(
        x=_middles(steps), y=values, name=name, marker_color=colour, marker_pattern_shape=pattern,
        **{"hovertemplate": f"%{{y:,}} {name}<extra></extra>"} | more,
    )  # fmt: skip


def _add_line(
    figure: go.Figure, steps: Steps, values: Sequence[float | None], name: str, colour: str, symbol: str, **more: Any
) -> None:
    figure.add_scatter(x=_middles(steps), y=values, name=name, mode="lines+markers", connectgaps=False)
    figure.data[-1].update(line={"color": colour, "width": 2}, marker={"symbol": symbol, "size": 8}, **more)


def _add_target(figure: go.Figure, at: float, message: str, colour: str, label_at: float | None = None) -> None:
    figure.add_hline(y=at, line={"color": colour, "width": 1.5, "dash": "dash"}, opacity=0.7)
    figure.add_annotation(
        x=1, xref="paper", xanchor="right", y=at if label_at is None else label_at, yanchor="bottom", showarrow=False,
        text=f"target for {message}", font={"color": colour, "size": 11},
    )  # fmt: skip


def _figure(steps: Steps, title: str) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        height=310, margin={"l": 8, "r": 8, "t": 40, "b": 8}, hovermode="x unified", barmode="stack", bargap=0.25,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.04, "x": 0, "traceorder": "normal"},
    )  # fmt: skip
    figure.update_xaxes(
        range=[steps[0].replace(tzinfo=None), steps[-1].replace(tzinfo=None)],
        hoverformat="%a %d %b, %H:%M" if width_of(steps) == "hour" else "%a %d %b %Y",
    )
    figure.update_yaxes(title=title, rangemode="tozero")
    return figure
