"""Costs of mistakes, the recommended thresholds, and how far to trust them."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from crag_core.base.text.display import counted, readable
from crag_core.experiments.statistics.intervals import least_certified
from crag_core.experiments.statistics.small_sets import MOST_CERTIFIED, held_out
from crag_core.experiments.thresholds.objective import (
    Costs,
    Objective,
    allowed,
    losses,
    surface,
    web_surface,
    wrong_surface,
)
from crag_core.experiments.thresholds.recommend import STEPS, Recommendation, beside, halves
from crag_core.experiments.thresholds.threshold_board import Array, Board, grid
from crag_core.report.thresholds.view import COSTS, compared_on, compared_rows, limit_lines, recommendation_lines
from crag_core.view.score_words import threshold_names
from ui.session import app_state
from ui.shell.text import plain
from ui.tune import charts, tune_state
from ui.tune.tune_state import Seen

BY_COSTS, BY_LIMIT = "By what mistakes cost", "By a limit on wrong answers"


def draw_objective(seen: Seen) -> tuple[Objective, float | None]:
    """What makes thresholds good here, and the confidence of the limit (None: for the questions of this set)."""
    way = st.segmented_control("How to choose", [BY_COSTS, BY_LIMIT], default=BY_COSTS, required=True, key="tune_way")
    if way == BY_LIMIT:
        return _draw_limit(held_out([case.asked for case in seen.graded]))
    with st.expander("Costs", icon=":material/payments:"), st.container(horizontal=True, vertical_alignment="bottom"):
        return Objective(_draw_costs()), None


def _draw_limit(held: int) -> tuple[Objective, float | None]:
    """Offers no promise that `held` unanswerable held-out questions could not certify."""
    least = {one: math.ceil(200 * least_certified(held, one)) / 2 for one in (0.9, 0.95, 0.99)}
    offered = [None, *(one for one, percent in least.items() if percent <= 100 * MOST_CERTIFIED)]
    key = f"tune_confidence_{len(offered)}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        confidence = st.selectbox(
            "The limit holds", offered, min(2, len(offered) - 1), key=key, width=330,
            format_func=lambda one: f"with {one:.0%} confidence" if one else "for the questions of this set",
            help="With confidence: also for new questions like these, tested on held-out ones.",
        )  # fmt: skip
        smallest = least[confidence] if confidence else 0.5
        share = st.number_input(
            "Confidently wrong, at most %", smallest, 100 * MOST_CERTIFIED, max(10.0, smallest), 0.5,
            key=f"tune_limit_{smallest:g}", width=210, help="Of the unanswerable questions.",
        )  # fmt: skip
    if held and len(offered) > 1 and confidence:
        st.caption(f"{smallest:g}% is the smallest limit that {held} unanswerable held-out questions can certify.")
    elif len(offered) == 1:
        st.caption(f"{held} unanswerable held-out questions certify no limit: more are needed for a promise.")
    return Objective(most_wrong=float(share) / 100), confidence


def _draw_costs() -> Costs:
    start = Costs()
    values = {
        name: st.number_input(
            title, 0.0, 1000.0, getattr(start, name), 0.1 if name == "call" else 0.5, key=f"tune_cost_{name}",
            help=meaning, width=130,
        )
        for name, title, meaning in COSTS
    }  # fmt: skip
    return Costs(**values)


def draw_recommended(found: Recommendation, objective: Objective) -> None:
    """The recommended pair, or in one line that yours are kept, and behind a fold how it was chosen."""
    if found.why_not:
        st.markdown(f":material/info: **No recommendation.** {plain(found.why_not)}")
        return
    now, values = app_state.policy(), readable(found.lower, found.upper)
    names = threshold_names(now)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        if found.keep:
            st.markdown(f"#### Nothing better found: keep yours, {' and '.join(values)}", width="content")
        else:
            title = "Nearest to the limit" if found.misses else "Recommended"
            pair = ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))
            st.markdown(f"#### {title}: {pair}", width="content")
            st.button(
                "Try these", on_click=_use, args=(found.lower, found.upper), icon=":material/tune:", key="tune_use",
                disabled=found.is_at(now.lower, now.upper), help="Moves the thresholds there and keeps nothing.",
            )  # fmt: skip
    if found.guaranteed:
        st.markdown(f":material/verified: {plain(f'{found.guaranteed.reason(names)} {found.guaranteed.odds}')}")
    for line in limit_lines(found):
        st.markdown(f":orange[:material/warning: {plain(line)}]")
    lines = recommendation_lines(found, names=names)
    st.markdown(plain(found.keep or _describe_gain(found, objective)))
    if len(lines) > 1:
        with st.expander("How sure is that?"):
            st.markdown("\n\n".join(map(plain, lines)))


def _describe_gain(found: Recommendation, objective: Objective) -> str:
    """What the recommended pair does on the held-out questions beside yours; "" where yours are not compared."""
    policy = app_state.policy()
    own = next((one for one in found.compared[1:] if (one.lower, one.upper) == (policy.lower, policy.upper)), None)
    if own is None:
        return ""
    return f"On {counted(found.judged_on, 'held-out question')}: {beside(found.compared[0], own, objective)}."


def _use(lower: float, upper: float) -> None:
    """For a callback: move the sidebar's thresholds there, and redraw the whole page."""
    app_state.put_marks(lower, upper)
    st.rerun()


def draw_map(seen: Seen, objective: Objective, found: Recommendation) -> None:
    board, now, axis = tune_state.board(seen), app_state.policy(), grid(STEPS)
    board = board.part(halves(board))
    values, what, message = _values(board, objective)
    points = [charts.Point(preset.name, preset.lower, preset.upper, "diamond", "#8d6bc2") for preset in now.presets]
    points.append(charts.Point("default", board.policy.lower, board.policy.upper, "square", "#5c6773"))
    if not found.why_not and not found.keep:
        name = "nearest" if found.misses else "recommended"
        points.append(charts.Point(name, found.lower, found.upper, "star", "#f2c230"))
    points.append(charts.Point("yours", now.lower, now.upper, "circle", "#3f88c5"))
    plateau = None if found.plateau is None else found.plateau.cells
    st.plotly_chart(
        charts.heat_map(axis, values, allowed(board, axis, axis), plateau, points, what, threshold_names(now)),
        key="tune_heat_map", on_select=_clicked, selection_mode="points", config={"displayModeBar": False},
    )  # fmt: skip
    alike = "" if plateau is None else " Inside the white line they do about as well as the best."
    st.caption(f"{message} at every pair of thresholds.{alike} Click to move your thresholds there.")


def _values(board: Board, objective: Objective) -> tuple[Array, str, str]:
    """(values of the heat map, their name, what they are in a sentence)"""
    axis = grid(STEPS)
    if objective.most_wrong is None:
        costs = surface(board, losses(board, objective), axis, axis)
        return costs, "cost a question", "The mean cost of a question"
    keeps = wrong_surface(board, axis, axis) <= objective.most_wrong
    rates = web_surface(board, axis, axis)
    return np.where(keeps, rates, np.nan), "web rate", "The web rate, where the limit is kept,"


def _clicked() -> None:
    chosen = st.session_state["tune_heat_map"].selection.points
    cell = next((point.get("customdata") for point in chosen if point.get("customdata")), None)
    if isinstance(cell, list | tuple) and len(cell) == 2 and app_state.policy().allows(*cell):
        _use(round(float(cell[0]), 2), round(float(cell[1]), 2))


def draw_compared(found: Recommendation) -> None:
    if not found.compared:
        return
    whose = "Your" if found.keep else "The recommended"
    st.dataframe(
        compared_rows(found, threshold_names(app_state.policy())), hide_index=True, key="tune_compared",
        alt=f"{whose} thresholds beside others, on the other half of the questions",
    )  # fmt: skip
    st.caption(f"{compared_on(found).capitalize()}.")
