"""A grade as the bytes that a cache keeps, and back."""

from __future__ import annotations

import json

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain, to_plain
from crag_core.base.types import Grade


def encode(grade: Grade) -> bytes:
    return json.dumps(to_plain(grade)).encode("ascii")


def decode(value: object) -> Grade | None:
    """None for whatever is not a grade with a score: others may write to the file or the server too."""
    if not isinstance(value, bytes | str):
        return None
    try:
        grade = from_plain(Grade, json.loads(value))
    except (ValueError, RecursionError, BadRecord):  # ValueError: neither JSON nor text
        return None
    return grade if grade.score is not None else None
