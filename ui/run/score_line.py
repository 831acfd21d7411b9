"""Every passage as a point on the score line, between two thresholds that can be moved by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.view.run_view import RunView
from crag_core.view.score_line import picture
from crag_core.view.score_words import PAGE, QUESTIONS, STEP, TWO_IN_ORDER
from ui import PARTS

_score_line = st.components.v2.component(
    "crag_score_line",
    html="<div class='scores'></div>",
    css=(PARTS / "score_line.css").read_text("utf-8"),
    js=(PARTS / "score_line.js").read_text("utf-8"),
)


def draw_scores(view: RunView, on_move: Callable[[float, float, bool], None] | None) -> None:
    """`on_move(lower, upper, done)` gets where the thresholds were moved, `done` once let go; None: they are fixed."""
    drawn = picture(view)
    if drawn is None:
        st.caption("Nothing was retrieved, so there is no score to compare.")
        return
    if len(drawn.lines) > 1:
        st.caption(TWO_IN_ORDER)

    def moved() -> None:
        thresholds = read_move(st.session_state["scores"].moved)
        if on_move and thresholds:
            on_move(*thresholds)

    more = {"can_move": on_move is not None, "questions": QUESTIONS, "step": STEP, "page": PAGE}
    _score_line(key="scores", data=to_plain(drawn) | more, on_moved_change=moved)


def read_move(sent: Any) -> tuple[float, float, bool] | None:
    """Thresholds as a browser sends them; None for what are none."""
    if not isinstance(sent, dict):
        return None
    values = (sent.get("lower"), sent.get("upper"))
    numbers = (value for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    found = [float(value) for value in numbers if math.isfinite(value)]
    if len(found) < len(values) or not 0.0 <= found[0] <= found[1] <= 1.0:
        return None
    return found[0], found[1], bool(sent.get("done"))
