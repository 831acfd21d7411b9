"""The summary of a recorded run, without its record."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.types import Action
from crag_core.trace.feedback import Mark
from crag_core.trace.summary import Ending


@dataclass(frozen=True)
class KeptRun:
    """`question` may be cut short. `action` as taken, None where nothing was decided.

    `is_imported`: the record came from a file, so it may be of another installation. `kept_at` is when it
    was first kept, in seconds since 1970. `asked_by` is "" without sign-in. `calls` and `tokens` are what it has paid
    for itself, see `Measured`. `route` and `answer` are what was said of them, `labelled` counts the passages of which
    something was said. `is_readable` is False where an earlier version kept a record that this one could not read when
    it took it over: then the figures are empty.
    """

    id: str
    created: str
    question: str
    action: Action | None
    policy: str
    evaluator: str
    is_imported: bool = False
    kept_at: float = 0.0
    ending: Ending = Ending.DONE
    asked_by: str = ""
    fingerprint: str = ""
    writer: str = ""
    writer_version: str = ""
    evaluator_version: str = ""
    embedding: str = ""
    score: float | None = None
    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0
    route: Mark | None = None
    answer: Mark | None = None
    labelled: int = 0
    is_readable: bool = True
