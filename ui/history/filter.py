"""The filter of the History page, from its fields and its address. Pure.

The fields are part of the address, so their values may be anybody's text: `unusable` checks them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from crag_core.base.types import Action
from crag_core.storage.history.run_filter import Feedback, Selection
from crag_core.trace.summary import Ending

ACTION, POLICY, WHEN, SINCE, UNTIL = "history_action", "history_policy", "history_when", "history_from", "history_to"
FEEDBACK, ENDING, TEXT = "history_feedback", "history_ended", "history_text"
"""Keys of the fields, and names in the address."""

ACTIONS: dict[str, Action | None] = {
    "Correct": Action.CORRECT,
    "Ambiguous": Action.AMBIGUOUS,
    "Incorrect": Action.INCORRECT,
    "Undecided": None,
}
ANY_TIME, TODAY, WEEK, MONTH, BETWEEN = "Any time", "Today", "7 days", "30 days", "From – to"
TIMES = (ANY_TIME, TODAY, WEEK, MONTH, BETWEEN)
FEEDBACKS = {
    "Route right": Feedback.ROUTE_RIGHT,
    "Route wrong": Feedback.ROUTE_WRONG,
    "Answer right": Feedback.ANSWER_RIGHT,
    "Answer wrong": Feedback.ANSWER_WRONG,
    "None": Feedback.NONE,
}
ENDINGS = {"Done": Ending.DONE, "Failed": Ending.FAILED, "Stopped": Ending.STOPPED, "Waiting": Ending.WAITING}
LONGEST_TEXT = 200
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2200, 1, 1)

TITLES = {
    TEXT: "text",
    ACTION: "action",
    POLICY: "policy",
    WHEN: "time",
    SINCE: "first day",
    UNTIL: "last day",
    FEEDBACK: "feedback",
    ENDING: "ending",
}
"""Of all fields."""
_DAYS = {WEEK: 7, MONTH: 30}


@dataclass(frozen=True)
class Filter:
    """The values of the fields; an empty one filters nothing. `since` and `until` are whole days, both included."""

    text: str = ""
    actions: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    when: str = ANY_TIME
    since: date | None = None
    until: date | None = None
    feedback: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """Why no run can match, "" where one can."""
        if self.when == BETWEEN and self.since and self.until and self.since > self.until:
            return f"The first day, {self.since}, is after the last one, {self.until}."
        return ""

    def selection(self, now: datetime, titles: Mapping[str, str], asked_by: str | None) -> Selection:
        """`now` is in the visitor's time zone, whose midnight begins a day. `titles` are those of policies by name."""
        since, until = self._times(now)
        return Selection(
            actions=tuple(ACTIONS[word] for word in self.actions),
            policies=tuple(name for name, title in titles.items() if title in self.policies),
            endings=tuple(ENDINGS[word] for word in self.endings),
            feedback=tuple(FEEDBACKS[word] for word in self.feedback),
            since=since,
            until=until,
            text=self.text.strip(),
            asked_by=asked_by,
        )

    def _times(self, now: datetime) -> tuple[float | None, float | None]:
        if self.when in _DAYS:
            return (now - timedelta(days=_DAYS[self.when])).timestamp(), None
        if self.when == TODAY:
            return _midnight(now.date(), now), None
        if self.when != BETWEEN:
            return None, None
        after = None if self.until is None else self.until + timedelta(days=1)
        return _midnight(self.since, now), _midnight(after, now)


def unusable(parameters: Mapping[str, Sequence[str]], policies: Collection[str]) -> tuple[str, ...]:
    """Names of fields in an address whose values they cannot have."""
    options = {ACTION: ACTIONS, POLICY: policies, WHEN: TIMES, FEEDBACK: FEEDBACKS, ENDING: ENDINGS}

    def can_have(name: str, value: str) -> bool:
        if name in options:
            return value in options[name]
        return len(value) <= LONGEST_TEXT if name == TEXT else not value or _is_day(value)

    given = {name: parameters[name] for name in TITLES if name in parameters}
    twice = {name for name in (TEXT, WHEN, SINCE, UNTIL) if len(given.get(name, ())) > 1}
    return tuple(
        name for name, values in given.items() if name in twice or not all(can_have(name, value) for value in values)
    )


def _is_day(text: str) -> bool:
    try:
        return FIRST_DAY <= date.fromisoformat(text) <= LAST_DAY
    except ValueError:
        return False


def _midnight(day: date | None, now: datetime) -> float | None:
    return None if day is None else datetime.combine(day, time(), now.tzinfo).timestamp()
