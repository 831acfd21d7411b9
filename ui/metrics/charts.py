"""The Plotly charts of the Metrics page, with targets as lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise

import plotly.graph_objects as go

from crag_core.base.types import Action
from crag_core.observability import trends
from crag_core.observability.trends import Figures, Share
from ui.metrics.periods import width_of
from ui.tune.charts import BLUE, GRAY, GREEN, ORANGE, RED

_COLOURS = {Action.CORRECT: GREEN, Action.AMBIGUOUS: ORANGE, Action.INCORRECT: RED}
_SIGNS = {Action.CORRECT: "", Action.AMBIGUOUS: "/", Action.INCORRECT: "x"}
"""Patterns of the bars, for those who do not tell the colours apart."""
_VIOLET = "#7a5fc7"

Steps = tuple[datetime, ...]


def decisions(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """How many runs took which action, and the share of CORRECT that is aimed at."""
    figure = _figure(steps)
    for action in Action:
        shares = [one.of(action) for one in found]
        figure.add_bar(
            x=_middles(steps), y=[share.hits for share in shares], name=action.value, marker_color=_COLOURS[action],
            marker_pattern_shape=_SIGNS[action], customdata=[_percent(share) for share in shares],
            hovertemplate=f"%{{y}} {action} (%{{customdata}})<extra></extra>",
        )  # fmt: skip
    figure.update_layout(barmode="stack", bargap=0.25)
    figure.update_yaxes(title="runs", rangemode="tozero")
    return figure


def rates(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """The three rates that have a target, each with its line."""
    figure = _figure(steps)
    message: tuple[tuple[str, Callable[[Figures], Share], float, str, str], ...] = (
        ("correct", lambda one: one.of(Action.CORRECT), trends.CORRECT_TARGET, GREEN, "circle"),
        ("corrected", lambda one: one.corrected, trends.CORRECTED_TARGET, ORANGE, "diamond"),
        ("web", lambda one: one.searched, trends.SEARCHED_TARGET, BLUE, "square"),
        ("correction helped", lambda one: one.improved, trends.IMPROVED_TARGET, _VIOLET, "x"),
    )
    for name, share_of, target, colour, symbol in message:
        shares = [share_of(one) for one in found]
        _add_line(figure, steps, [share.value for share in shares], name, colour, symbol)
        figure.data[-1].update(
            customdata=[f"{share.hits} of {share.of}" for share in shares],
            hovertemplate=f"{name} %{{y:.0%}} (%{{customdata}})<extra></extra>",
        )
        _add_target(figure, target, f"{name}: {target:.0%}", colour)
    figure.update_yaxes(title="share of the decided runs", tickformat=".0%", range=[-0.02, 1.04])
    return figure


def latencies(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """Median and 95th percentile of both paths, in milliseconds on a scale of powers of ten."""
    figure = _figure(steps)
    for name, times, target, colour in (
        ("correct", [one.fast for one in found], trends.FAST_TARGET, GREEN),
        ("corrected", [one.slow for one in found], trends.SLOW_TARGET, ORANGE),
    ):
        for title, values, dash, symbol in (
            ("p50", [one.p50 for one in times], "solid", "circle"),
            ("p95", [one.p95 for one in times], "dot", "triangle-up"),
        ):
            _add_line(figure, steps, values, f"{name}, {title}", colour, symbol)
            figure.data[-1].update(
                line_dash=dash,
                customdata=[one.count for one in times],
                hovertemplate=f"{name}, {title}: %{{y:,.0f}} ms of %{{customdata}} runs<extra></extra>",
            )
        _add_target(figure, target, f"{name}, p50: {target:.0f} ms", colour, told_at=math.log10(target))
    figure.update_yaxes(title="milliseconds", type="log", tickformat=",", dtick=1)
    return figure


def costs(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """Tokens as bars, model calls as a line on an axis of its own."""
    figure = _figure(steps)
    for name, values, colour in (
        ("prompt tokens", [one.prompt_tokens for one in found], BLUE),
        ("tokens written", [one.completion_tokens for one in found], _VIOLET),
    ):
        figure.add_bar(
            x=_middles(steps), y=values, name=name, marker_color=colour,
            hovertemplate=f"%{{y:,}} {name}<extra></extra>",
        )  # fmt: skip
    _add_line(figure, steps, [one.calls for one in found], "model calls (right)", ORANGE, "diamond")
    figure.data[-1].update(yaxis="y2", hovertemplate="%{y:,} model calls<extra></extra>")
    figure.update_layout(
        barmode="stack",
        bargap=0.25,
        yaxis={"title": "tokens", "rangemode": "tozero"},
        yaxis2={
            "title": "calls", "overlaying": "y", "side": "right", "rangemode": "tozero", "showgrid": False,
            "tickmode": "auto", "tickformat": ",d",
        },
    )  # fmt: skip
    return figure


def grades(found: Sequence[Figures], steps: Steps) -> go.Figure:
    """What became of the grades that runs needed."""
    figure = _figure(steps)
    for name, counts, colour, sign in (
        ("from the cache", [one.cached.hits for one in found], BLUE, "/"),
        ("made anew", [one.cached.of - one.cached.hits for one in found], GRAY, ""),
    ):
        figure.add_bar(
            x=_middles(steps), y=counts, name=name, marker_color=colour, marker_pattern_shape=sign,
            hovertemplate=f"%{{y:,}} grades {name}<extra></extra>",
        )  # fmt: skip
    _add_line(figure, steps, [one.ungraded.hits or None for one in found], "not graded", RED, "x")
    figure.data[-1].update(mode="markers", hovertemplate="%{y:,} not graded<extra></extra>")
    figure.update_layout(barmode="stack", bargap=0.25)
    figure.update_yaxes(title="grades", rangemode="tozero")
    return figure


def _middles(steps: Steps) -> list[datetime]:
    # Without a zone, so that the browser shows the visitor's clock as it is.
    return [(start + (end - start) / 2).replace(tzinfo=None) for start, end in pairwise(steps)]


def _add_line(
    figure: go.Figure, steps: Steps, values: Sequence[float | None], name: str, colour: str, symbol: str
) -> None:
    figure.add_scatter(
        x=_middles(steps), y=list(values), name=name, mode="lines+markers", connectgaps=False,
        line={"color": colour, "width": 2}, marker={"symbol": symbol, "size": 8},
    )  # fmt: skip


def _add_target(figure: go.Figure, at: float, message: str, colour: str, told_at: float | None = None) -> None:
    """`told_at`: on a scale of powers of ten a label is placed by the power, the line is not."""
    figure.add_hline(y=at, line={"color": colour, "width": 1.5, "dash": "dash"}, opacity=0.7)
    figure.add_annotation(
        x=1, xref="paper", xanchor="right", y=at if told_at is None else told_at, yanchor="bottom", showarrow=False,
        text=f"target for {message}", font={"color": colour, "size": 11},
    )  # fmt: skip


def _percent(share: Share) -> str:
    return "–" if share.value is None else f"{share.value:.0%}"


def _figure(steps: Steps) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        height=310, margin={"l": 8, "r": 8, "t": 40, "b": 8}, hovermode="x unified",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.04, "x": 0, "traceorder": "normal"},
    )  # fmt: skip
    figure.update_xaxes(
        range=[steps[0].replace(tzinfo=None), steps[-1].replace(tzinfo=None)],
        hoverformat="%a %d %b, %H:%M" if width_of(steps) == "hour" else "%a %d %b %Y",
    )
    return figure
