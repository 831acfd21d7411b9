"""A point of the learning curve: what is counted, of which passages."""

from __future__ import annotations

from typing import Any

import pytest


def item(name: str, kind: str, label: int, own: int = 1) -> dict[str, Any]:
    return {"set": name, "kind": kind, "label": label, "own": own}


@pytest.mark.parametrize(
    ("items", "scores", "told"),
    [
        (
            [item("squad2_dev", "answered", 1), item("squad2_dev", "adversarial", 0)] * 4,
            [[2.0], [1.0]] * 4,
            {"squad2_dev": "1.0"},
        ),
        (
            [item("everyday2, full", "answered", 1, own=2), item("everyday2, full", "swapped", 0)] * 4,
            [[0.0, 3.0], [2.0], [0.0, 3.0], [4.0]] * 2,
            {"everyday2, full": "0.5", "everyday2, full, unanswered above the level": "0.5"},
        ),
        (
            [item("siblings, full", "answered", 1), item("siblings, full", "swapped", 0)] * 4,
            [[3.0, 9.0], [1.0, 9.0], [3.0, 2.0], [1.0]] * 2,
            {"siblings, full": "1.0", "siblings, full, own beats the siblings": "0.5"},
        ),
        (
            [item("pairs", kind, label) for kind in ("nq", "policyqa") for label in (1, 0)] * 3,
            [[2.0], [1.0], [1.0], [2.0]] * 3,
            {"pairs, mean of 2": "0.500, worst policyqa 0.00, nq 1.00"},
        ),
    ],
)
def test_the_best_of_its_own_passages_counts(
    items: list[dict[str, Any]], scores: list[list[float]], told: dict[str, str]
) -> None:
    from benchmarks.curve import report

    found = report(items, scores)
    assert all(found[name].startswith(value) for name, value in told.items()), found
