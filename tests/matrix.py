"""Matrices of which `make test` runs a part, and `make test-all` every cell."""

from __future__ import annotations

from collections.abc import Iterable
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


def mostly(taken: Any, *others: Any) -> list[Any]:
    """The cheap variant that sees most faults, and those that only `make test-all` runs."""
    return [taken, *(pytest.param(one, marks=pytest.mark.exhaustive) for one in others)]
