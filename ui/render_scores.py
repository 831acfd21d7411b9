"""Every passage as a point on the score line, between the two thresholds."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from crag_core.policy import Policy
from crag_core.reroute import Reroute
from crag_core.trace import Trace
from crag_core.types import Action, Grade, Passage
from ui.text import shortened

_BANDS = {Action.INCORRECT: "#c8453d", Action.AMBIGUOUS: "#d08a1d", Action.CORRECT: "#2c9a63"}
_ROW = 30  # pixels


def draw_scores(trace: Trace, policy: Policy, routed: Reroute) -> None:
    rows = [(passage, trace.grade_of(passage.id)) for passage in routed.course.looked_at]
    # Web results are graded only where the policy wants it; a row of "not graded" would say nothing.
    web = [(passage, trace.grade_of(passage.id)) for passage in (trace.web.passages if trace.web else ())]
    rows += [(passage, grade) for passage, grade in web if grade is not None]
    if not rows:
        return
    st.plotly_chart(
        _figure(rows, policy, routed),
        config={"displayModeBar": False},
        alt=_described(rows, policy, routed),
        key="scores",
    )


def _figure(rows: list[tuple[Passage, Grade | None]], policy: Policy, routed: Reroute) -> go.Figure:
    figure = go.Figure()
    edges = (0.0, policy.lower, policy.upper, 1.0)
    for action, low, high in zip(_BANDS, edges, edges[1:], strict=False):
        label = policy.route(action).label if high - low >= 0.08 else ""
        figure.add_vrect(
            low, high, fillcolor=_BANDS[action], opacity=0.13, line_width=0, layer="below",
            annotation_text=label, annotation_position="top left", annotation_font_size=12,
        )  # fmt: skip
    for threshold in {policy.lower, policy.upper}:
        figure.add_vline(threshold, line_width=1.5, line_dash="dot", line_color="gray")
    score = routed.decision.score
    if score is not None and not routed.decision.rule:
        figure.add_vline(
            score, line_width=2, line_color="gray", annotation_text=f"overall {score:.2f}",
            annotation_position="bottom right", annotation_font_size=12,
        )  # fmt: skip
    for at, (passage, grade) in enumerate(rows):
        graded = grade is not None and grade.score is not None
        figure.add_scatter(
            x=[grade.score if grade and grade.score is not None else 0.0],
            y=[at],
            mode="markers+text",
            marker={
                "size": 13,
                "symbol": ("circle" if passage.origin == "corpus" else "diamond") + ("" if graded else "-open"),
                "color": "#1d7cc4",
                "line": {"width": 2 if passage.id in routed.decision.deciding else 0, "color": "gray"},
            },
            text=[_score(grade)],
            textposition="middle right",
            hovertext=[_name(at, passage)],
            hoverinfo="text",
            showlegend=False,
        )
    figure.update_xaxes(range=[0, 1.04], dtick=0.1, showgrid=False, zeroline=False, fixedrange=True)
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[_name(at, passage) for at, (passage, _) in enumerate(rows)],
        range=[len(rows) - 0.4, -1.1],
        showgrid=True,
        zeroline=False,
        fixedrange=True,
    )
    figure.update_layout(height=_ROW * len(rows) + 95, margin={"l": 8, "r": 8, "t": 26, "b": 34}, hovermode="closest")
    return figure


def _score(grade: Grade | None) -> str:
    return "not graded" if grade is None or grade.score is None else f"{grade.score:.2f}"


def _name(at: int, passage: Passage) -> str:
    """Plotly reads a little HTML in its labels, so angle brackets go."""
    page = f", page {passage.page}" if passage.page else ""
    return f"{at + 1}. {shortened(passage.source, 38)}{page}".replace("<", "‹").replace(">", "›")


def _described(rows: list[tuple[Passage, Grade | None]], policy: Policy, routed: Reroute) -> str:
    told = [f"{_name(at, passage)}: {_score(grade)}" for at, (passage, grade) in enumerate(rows)]
    return (
        f"Scores of the passages against lower {policy.lower:.2f} and upper {policy.upper:.2f}, "
        f"{routed.decision.action}. {'; '.join(told)}."
    )
