"""The pictures of the Tune page hold the figures that they are given."""

from __future__ import annotations

import numpy as np
import pytest

from crag_core.experiments.thresholds.objective import Objective, allowed, losses, surface
from crag_core.experiments.thresholds.recommend import recommend
from crag_core.experiments.thresholds.threshold_board import grid
from tests.experiments.made_up_sets import drawn
from ui.tune import charts
from ui.tune.charts import Point

SEEN = drawn(200, seed=3)
SCORES, YES = SEEN.deciding().upper, SEEN.answerable


def test_both_kinds_stand_on_either_side_of_the_axis() -> None:
    figure = charts.histogram(SCORES, YES, [("lower", 0.3), ("upper", 0.745)], "score")
    above, below = figure.data
    assert sum(above.y) == YES.sum() and sum(below.y) == -(~YES).sum()
    assert [line.x0 for line in figure.layout.shapes] == [0.3, 0.745]
    assert [note.text for note in figure.layout.annotations] == ["lower 0.30", "upper 0.745"]


def test_a_click_on_the_map_names_its_thresholds_and_none_lies_where_lower_exceeds_upper() -> None:
    axis, objective = grid(11), Objective()
    costs = surface(SEEN, losses(SEEN, objective), axis, axis)
    found = recommend(SEEN, objective, steps=11)
    assert found.plateau is not None
    now = Point("now", 0.3, 0.745, "circle", "#000000")
    figure = charts.heat_map(axis, costs, allowed(SEEN, axis, axis), found.plateau.cells, [now], "cost")
    cells = next(trace for trace in figure.data if trace.name == "cells")
    assert len(cells.x) == 66 and all(lower <= upper for lower, upper in cells.customdata)
    assert cells.text[0] == f"{costs[0, 0]:.2f}"
    assert [tuple(pair) for pair in cells.customdata] == list(zip(cells.x, cells.y, strict=True))
    assert all(type(pair) is list for pair in figure.to_plotly_json()["data"][-2]["customdata"]), "as a click reads it"
    assert any(trace.name == "now 0.30, 0.745" for trace in figure.data)


def test_the_line_goes_around_the_plateau_and_is_closed_at_the_edge() -> None:
    axis = grid(11)
    cells = np.zeros((11, 11), dtype=bool)
    cells[0:4, 5:11] = True
    figure = charts.heat_map(axis, np.zeros((11, 11)), cells, cells, [], "cost")
    line = next(trace for trace in figure.data if trace.name == "plateau")
    assert (len(line.x), line.x[0], line.x[-1]) == (13, pytest.approx(-0.1), pytest.approx(1.1))
    assert np.array_equal(line.z[1:-1, 1:-1], cells.T)
    assert not line.z[0].any() and not line.z[-1].any() and not line.z[:, 0].any() and not line.z[:, -1].any()
