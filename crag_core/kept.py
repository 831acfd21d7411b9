"""What the history tells of a run without opening its record."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.types import Action


@dataclass(frozen=True)
class KeptRun:
    """`question` may be cut short. `action` as taken, None where nothing was decided.

    `is_imported`: the record came from a file, so nothing tells that this installation made it.
    """

    id: str
    created: str
    question: str
    action: Action | None
    policy: str
    evaluator: str
    is_imported: bool = False
