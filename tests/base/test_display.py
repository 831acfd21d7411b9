"""Scores and thresholds as people read them."""

import pytest

from crag_core.base.text.display import against, readable


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0.5, 0.3, 0.7), ("0.50", "0.30", "0.70")),
        ((0.6999, 0.7), ("0.6999", "0.7000")),
        ((0.7, 0.7), ("0.70", "0.70")),
        ((0.955, 0.3), ("0.955", "0.30")),
        ((0.1234567891, 0.1234567892), ("0.123456789", "0.123456789")),
        ((), ()),
    ],
)
def test_numbers_get_the_decimals_that_tell_them_apart(numbers: tuple[float, ...], said: tuple[str, ...]) -> None:
    assert readable(*numbers) == said


@pytest.mark.parametrize(
    ("score", "limits", "said"),
    [
        (0.745, (0.75,), ("0.74", "0.75")),
        (0.7451, (0.75,), ("0.745", "0.750")),
        (0.735, (0.5, 0.75), ("0.73", "0.50", "0.75")),
        (0.6999, (0.3, 0.7), ("0.6999", "0.30", "0.7000")),
        (0.75, (0.75,), ("0.75", "0.75")),
        (0.7449, (0.745,), ("0.74", "0.745")),
        (0.7451, (0.745,), ("0.75", "0.745")),
        (0.31, (0.955,), ("0.31", "0.955")),
        (0.566, (), ("0.57",)),
    ],
)
def test_a_score_never_reads_as_a_threshold_that_it_is_not(
    score: float, limits: tuple[float, ...], said: tuple[str, ...]
) -> None:
    assert against(score, *limits) == said
