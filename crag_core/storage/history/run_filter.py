"""A filter of recorded runs. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from crag_core.base.errors import BadRecord
from crag_core.base.types import Action
from crag_core.trace.summary import Ending

LONGEST_TEXT = 500


class Feedback(StrEnum):
    """What people said of a run. NONE: nobody said anything, of its passages neither."""

    ROUTE_RIGHT = "route right"
    ROUTE_WRONG = "route wrong"
    ANSWER_RIGHT = "answer right"
    ANSWER_WRONG = "answer wrong"
    NONE = "none"


@dataclass(frozen=True)
class Selection:
    """A run is meant that fits every field; it fits a tuple with any value of it. Empty: whatever it has.

    In `actions` None stands for runs that decided nothing. `since` and `until` are seconds since 1970 of the time when
    it was first kept, the second one excluded. `text` stands in the question or the answer, in capitals or not.
    `asked_by` None: whoever asked; "": asked without sign-in. `ids` None: any; (): none. `imported` None: either.
    Raises `BadRecord` for what no run can fit by its form.
    """

    actions: tuple[Action | None, ...] = ()
    policies: tuple[str, ...] = ()
    endings: tuple[Ending, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    since: float | None = None
    until: float | None = None
    text: str = ""
    asked_by: str | None = None
    ids: tuple[str, ...] | None = None
    imported: bool | None = None

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST_TEXT:
            raise BadRecord(f"Expected at most {LONGEST_TEXT} signs to look for, found {len(self.text)}.")
        if not all(math.isfinite(at) for at in (self.since, self.until) if at is not None):
            raise BadRecord(f"Expected times that can be compared, found {self.since} and {self.until}.")


EVERYTHING = Selection()
