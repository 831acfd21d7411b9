"""The map of all chunks in two dimensions, with the last question and its retrieved chunks."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go
import streamlit as st

from crag_core.base.documents import MapPoint, PassageMap
from crag_core.base.errors import CragError
from crag_core.base.text.display import clean, counted, shortened
from ui.session import app_state
from ui.shell.text import plain

_COLOURS = ("#3f88c5", "#d98a1f", "#2e9b63", "#a463c2", "#c8463d", "#3aa6a6", "#b58a5a", "#d06aa5")
_OTHERS = "#8794a1"
_SCORES = [[0.0, "#c8463d"], [0.5, "#e2c25b"], [1.0, "#2e9b63"]]
_LONGEST_NAME = 28


@dataclass(frozen=True)
class Asked:
    """A question on the map: its own point, those of its passages in rank order, and the grades by passage id."""

    question: MapPoint
    passages: Sequence[MapPoint]
    grades: Mapping[str, float | None]


def draw_map(collection: str) -> None:
    """Of one collection, or of all with ""."""
    found = app_state.workbench().maps.draw(collection)
    if found is None:
        st.caption("A map needs three chunks.")
        return
    asked = _asked(collection)
    alt = f"Map of {counted(len(found.points), 'chunk')}"
    if asked is not None:
        alt += f", the last question and {counted(len(asked.passages), 'chunk')} retrieved"
    st.plotly_chart(_map_figure(found, asked), key="documents_map_chart", config={"scrollZoom": True}, alt=alt)
    st.caption(_describe(found, asked))


def _asked(collection: str) -> Asked | None:
    trace = app_state.trace()
    if trace is None or not trace.passages:
        return None
    ids = [passage.id for passage in trace.passages]
    try:
        points = app_state.workbench().maps.place(trace.question, ids, collection)
    except CragError:  # the sidebar shows what is wrong with the embedding model
        return None
    grades = {one: grade.score if (grade := trace.grade_of(one)) else None for one in ids}
    return Asked(points[0], points[1:], grades) if points else None


def _describe(found: PassageMap, asked: Asked | None) -> str:
    shown = f"{len(found.points):,} of " if len(found.points) < found.passages else ""
    message = (
        f"{shown}{found.passages:,} chunks by their two principal components ({found.share:.0%} of the variance): far "
        "apart means different, close together may still differ."
    )
    if asked is None:
        return f"{message} Ask a question to see it here with its chunks."
    question = plain(shortened(asked.question.text, 120))
    return f"{message} Star: “{question}”. Numbers: its chunks by rank, coloured by score from red to green."


def _map_figure(found: PassageMap, asked: Asked | None) -> go.Figure:
    """The documents with the most chunks have colours of their own."""
    figure = go.Figure()
    counts = Counter(point.name for point in found.points)
    named = [name for name, _ in counts.most_common(len(_COLOURS))]
    others = [point for point in found.points if point.name not in named]
    if others:
        _add(figure, others, counted(len(counts) - len(named), "other document"), _OTHERS)
    for name, colour in zip(named, _COLOURS, strict=False):
        points = [point for point in found.points if point.name == name]
        _add(figure, points, escape(shortened(clean(name), _LONGEST_NAME)), colour)
    if asked is not None:
        _add_asked(figure, asked)
    axis = {"visible": False, "showgrid": False, "zeroline": False}
    # Distances count: both directions have the same scale.
    figure.update_layout(
        height=560, margin={"l": 0, "r": 0, "t": 8, "b": 8}, xaxis=axis, yaxis={**axis, "scaleanchor": "x"},
        legend={"orientation": "h", "y": -0.02, "itemsizing": "constant"}, dragmode="pan",
    )  # fmt: skip
    return figure


def _add(figure: go.Figure, points: Sequence[MapPoint], name: str, colour: str) -> None:
    figure.add_scattergl(
        x=[point.x for point in points], y=[point.y for point in points], mode="markers", name=name,
        marker={"size": 6, "color": colour, "opacity": 0.65},
        text=[_hover(point) for point in points], hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip


def _add_asked(figure: go.Figure, asked: Asked) -> None:
    ranked = [(rank, point, asked.grades.get(point.id)) for rank, point in enumerate(asked.passages, 1)]
    for is_graded, name in ((True, "retrieved, by score"), (False, "retrieved, not graded")):
        chosen = [one for one in ranked if (one[2] is not None) == is_graded]
        if chosen:
            figure.add_scattergl(
                x=[point.x for _, point, _ in chosen], y=[point.y for _, point, _ in chosen],
                mode="markers+text", name=name,
                text=[str(rank) for rank, _, _ in chosen], textfont={"color": "#111111", "size": 11},
                marker={
                    "size": 19, "line": {"width": 1.5, "color": "#111111"}, "cmin": 0, "cmax": 1, "colorscale": _SCORES,
                    "color": [grade for _, _, grade in chosen] if is_graded else "#ffffff",
                },
                customdata=[_hover(point, _grade(grade)) for _, point, grade in chosen],
                hovertemplate="%{customdata}<extra></extra>",
            )  # fmt: skip
    figure.add_scattergl(
        x=[asked.question.x], y=[asked.question.y], mode="markers", name="the question",
        marker={"symbol": "star", "size": 20, "color": "#f2c230", "line": {"width": 1.5, "color": "#111111"}},
        customdata=[_wrapped(asked.question.text)], hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip


def _grade(grade: float | None) -> str:
    return "not graded" if grade is None else f"score {grade:.2f}"


def _hover(point: MapPoint, message: str = "") -> str:
    """The picture reads some HTML: text of documents is escaped."""
    head = " · ".join(filter(None, (clean(point.name), clean(point.where), message)))
    return f"<b>{_wrapped(head)}</b><br>{_wrapped(point.text)}"


def _wrapped(text: str) -> str:
    return "<br>".join(escape(line) for line in textwrap.wrap(shortened(clean(text), 280), 70))
