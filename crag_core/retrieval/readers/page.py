"""The result of every reader."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """Readable text. `number` counts from 1, and is None in formats that have no pages."""

    text: str
    number: int | None = None
