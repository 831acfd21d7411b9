"""Matrices of which `make test` runs a part, and `make test-all` every cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest


def diagonal(rows: Iterable[Any], columns: Iterable[Any]) -> list[Any]:
    """Every pair; exhaustive are all but a diagonal, on which each row and each column stands at least once."""
    down, across = list(rows), list(columns)
    turn = min(len(down), len(across))
    return [
        pytest.param(row, column, marks=[] if (x - y) % turn == 0 else [pytest.mark.exhaustive])
        for y, row in enumerate(down)
        for x, column in enumerate(across)
    ]


def every_fourth(cases: Mapping[str, Any]) -> list[Any]:
    """Of cases by name that go one way through the code; the others are exhaustive."""
    rows = {name: one if isinstance(one, tuple) else (one,) for name, one in cases.items()}
    marks = [[pytest.mark.exhaustive] * bool(place % 4) for place in range(len(rows))]
    return [pytest.param(*row, id=name, marks=marked) for (name, row), marked in zip(rows.items(), marks, strict=True)]


def mostly(taken: Any, *others: Any) -> list[Any]:
    """The cheap variant that sees most faults, and those that only `make test-all` runs."""
    return [taken, *(pytest.param(one, marks=pytest.mark.exhaustive) for one in others)]
