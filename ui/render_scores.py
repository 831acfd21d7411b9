"""Every passage as a point on the score line, between the two thresholds; of two signals each has its own line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import plotly.graph_objects as go
import streamlit as st
from plotly.subplots import make_subplots

from crag_core.figures import readable
from crag_core.policy import Policy
from crag_core.reroute import Reroute
from crag_core.trace import Trace
from crag_core.types import ANSWERING, TOPICAL, Action, Decision, Grade, Passage
from ui.render_signals import TWO_IN_ORDER
from ui.text import shortened

_BANDS = {Action.INCORRECT: "#c8453d", Action.AMBIGUOUS: "#d08a1d", Action.CORRECT: "#2c9a63"}
_ROW = 30  # pixels
_Rows = list[tuple[Passage, Grade | None]]


@dataclass(frozen=True)
class _Line:
    """A score line: the number of each row (None: not graded), and the actions of its bands between `edges`.

    `compared` is the number that the thresholds are compared with. A band without an action leaves the question to the
    next line. `is_asked`: nothing before has settled it.
    """

    values: tuple[float | None, ...]
    edges: tuple[float, ...]
    bands: tuple[Action | None, ...]
    compared: float | None
    title: str = ""
    is_asked: bool = True


def draw_scores(trace: Trace, policy: Policy, routed: Reroute) -> None:
    rows = [(passage, trace.grade_of(passage.id)) for passage in routed.course.looked_at]
    # Web results are graded only where the policy wants it; a row of "not graded" would say nothing.
    web = [(passage, trace.grade_of(passage.id)) for passage in (trace.web.passages if trace.web else ())]
    rows += [(passage, grade) for passage, grade in web if grade is not None]
    if not rows:
        return
    lines = _lines(rows, policy, routed.decision)
    if len(lines) > 1:
        st.caption(TWO_IN_ORDER)
    st.plotly_chart(
        _figure(rows, lines, policy, routed.decision),
        config={"displayModeBar": False},
        alt=_described(rows, lines, policy, routed.decision),
        key="scores",
    )


def _lines(rows: _Rows, policy: Policy, decision: Decision) -> list[_Line]:
    if decision.score is None or decision.topical is None:
        scores = tuple(grade.score if grade else None for _, grade in rows)
        score = None if decision.rule else decision.score
        return [_Line(scores, (0.0, policy.lower, policy.upper, 1.0), tuple(_BANDS), score)]
    answering = _line_of(rows, ANSWERING, decision.score, "upper", policy.upper, (None, Action.CORRECT))
    bands = (Action.INCORRECT, Action.AMBIGUOUS)
    topical = _line_of(rows, TOPICAL, decision.topical, "lower", policy.lower, bands)
    return [answering, replace(topical, is_asked=decision.action is not Action.CORRECT)]


def _line_of(
    rows: _Rows, part: str, best: float, name: str, threshold: float, bands: tuple[Action | None, ...]
) -> _Line:
    value, limit = readable(best, threshold)
    title = f"<b>{part.capitalize()}</b><br>best {value}, {name} {limit}"
    values = tuple(grade.part(part) if grade else None for _, grade in rows)
    return _Line(values, (0.0, threshold, 1.0), bands, best, title)


def _figure(rows: _Rows, lines: list[_Line], policy: Policy, decision: Decision) -> go.Figure:
    titles = [line.title for line in lines]
    figure = make_subplots(1, len(lines), shared_yaxes=True, horizontal_spacing=0.05, subplot_titles=titles)
    figure.update_annotations(font_size=13)
    for column, line in enumerate(lines, start=1):
        for point in _points(rows, line, decision):
            figure.add_trace(point, 1, column)
        _add_bands(figure, column, line, policy)  # after the points: an empty subplot is given none
    figure.update_xaxes(
        range=[0, 1.04 if len(lines) == 1 else 1.12], dtick=0.1 * len(lines), showgrid=False, zeroline=False,
        fixedrange=True,
    )  # fmt: skip
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[_name(at, passage, 38 if len(lines) == 1 else 20) for at, (passage, _) in enumerate(rows)],
        range=[len(rows) - 0.4, -1.1],
        showgrid=True,
        zeroline=False,
        fixedrange=True,
    )
    top = 26 if len(lines) == 1 else 48
    figure.update_layout(
        height=_ROW * len(rows) + 69 + top, margin={"l": 8, "r": 8, "t": top, "b": 34}, hovermode="closest"
    )
    return figure


def _add_bands(figure: go.Figure, column: int, line: _Line, policy: Policy) -> None:
    opacity = 0.13 if line.is_asked else 0.05
    for action, low, high in zip(line.bands, line.edges, line.edges[1:], strict=False):
        if action is not None:
            label = policy.route(action).label if high - low >= 0.08 else ""
            figure.add_vrect(
                low, high, fillcolor=_BANDS[action], opacity=opacity, line_width=0, layer="below", row=1, col=column,
                annotation_text=label, annotation_position="top left", annotation_font_size=12,
            )  # fmt: skip
    for threshold in set(line.edges[1:-1]):
        figure.add_vline(threshold, line_width=1.5, line_dash="dot", line_color="gray", row=1, col=column)
    if line.compared is not None and not line.title:  # the best of two signals is one of the points
        figure.add_vline(
            line.compared, line_width=2, line_color="gray", annotation_text=f"overall {line.compared:.2f}",
            annotation_position="bottom right", annotation_font_size=12, row=1, col=column,
        )  # fmt: skip


def _points(rows: _Rows, line: _Line, decision: Decision) -> Iterator[go.Scatter]:
    for at, ((passage, _), value) in enumerate(zip(rows, line.values, strict=True)):
        is_best = bool(line.title) and value == line.compared
        decides = passage.id in decision.deciding and (is_best or not line.title)
        yield go.Scatter(
            x=[value or 0.0],
            y=[at],
            mode="markers+text",
            marker={
                "size": 13,
                "symbol": ("circle" if passage.origin == "corpus" else "diamond")
                + ("" if value is not None else "-open"),
                "color": "#1d7cc4",
                "line": {"width": 2 if decides else 0, "color": "gray"},
            },
            text=[f"<b>{_told(value)}</b>" if is_best else _told(value)],
            textposition="middle left" if line.title and (value or 0.0) > 0.7 else "middle right",
            hovertext=[_name(at, passage)],
            hoverinfo="text",
            showlegend=False,
        )


def _told(value: float | None) -> str:
    return "not graded" if value is None else f"{value:.2f}"


def _name(at: int, passage: Passage, length: int = 38) -> str:
    """Plotly reads a little HTML in its labels, so angle brackets go."""
    page = f", page {passage.page}" if passage.page else ""
    return f"{at + 1}. {shortened(passage.source, length)}{page}".replace("<", "‹").replace(">", "›")


def _described(rows: _Rows, lines: list[_Line], policy: Policy, decision: Decision) -> str:
    parts = ("",) if len(lines) == 1 else (f"{ANSWERING} ", f"{TOPICAL} ")
    told = []
    for at, (passage, _) in enumerate(rows):
        numbers = ", ".join(f"{part}{_told(line.values[at])}" for part, line in zip(parts, lines, strict=True))
        told.append(f"{_name(at, passage)}: {numbers}")
    against = f" against lower {policy.lower:.2f} and upper {policy.upper:.2f}"
    if len(lines) > 1:
        against = f", answering against upper {policy.upper:.2f}, topical against lower {policy.lower:.2f}"
    return f"Scores of the passages{against}, {decision.action}. {'; '.join(told)}."
