"""What `training.coarse` fits, and how its figures are routed, on made-up cosines."""

from __future__ import annotations

from random import Random

import pytest

from crag_core.evaluators.shared.coarse import Curve
from training import coarse
from training.coarse import Compared, route


def test_a_known_curve_is_found_again() -> None:
    draw, known = Random(4), Curve(middle=0.83, slope=60.0)
    rows: dict[bool, list[list[float]]] = {True: [], False: []}
    for _ in range(20_000):
        cosine, moved = draw.uniform(0.75, 0.92), float(draw.random() < 0.5)
        rows[draw.random() < known.at(cosine - 0.05 * moved)].append([cosine, moved])
    groups = [(some, label, float(len(some))) for label, some in rows.items()]
    slope, middle, (shift,) = coarse._regress(groups)
    assert (slope, middle) == (pytest.approx(60, rel=0.1), pytest.approx(0.83, abs=0.002))
    assert -shift / slope == pytest.approx(0.05, abs=0.003)


def test_the_more_similar_the_further_up_the_route() -> None:
    near, far = Compared("near", 0.83, 0.0), Compared("other", 0.74, 0.0)
    for policy in ("two-signal", "paper"):
        cosines = (0.70, 0.83, 0.94)
        assert [route(policy, [far, near, Compared("answers", cosine, 0.0)]) for cosine in cosines[1:]] == ["A", "C"]
        assert route(policy, [far, far]) == "I"
    assert route("two-signal", [Compared("answers", 0.94 + 0.044, 0.044)]) == "C", "at its level"
