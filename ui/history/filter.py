"""The filter of the History page, from its fields and its address. Pure.

The fields write themselves into the address, so what comes back is anybody's text, and every part is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from crag_core.base.text.display import clean, shortened
from crag_core.base.types import Action
from crag_core.storage.history.run_filter import Feedback, Selection
from crag_core.trace.run_stats import Ending

ACTION, POLICY, WHEN, SINCE, UNTIL = "history_action", "history_policy", "history_when", "history_from", "history_to"
FEEDBACK, ENDING, TEXT = "history_feedback", "history_ended", "history_text"
"""Keys of the fields, and names in the address."""
NAMES = (TEXT, ACTION, POLICY, WHEN, SINCE, UNTIL, FEEDBACK, ENDING)

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

_DAYS = {WEEK: 7, MONTH: 30}
_CALLED = {
    ACTION: "action",
    POLICY: "policy",
    WHEN: "time",
    SINCE: "first day",
    UNTIL: "last day",
    FEEDBACK: "feedback",
    ENDING: "ending",
    TEXT: "text",
}


@dataclass(frozen=True)
class Filter:
    """What stands in the fields; empty: whatever a run has. `since` and `until` are whole days, both included."""

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
        """Why nothing can fit it, "" where something can."""
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


def refused(parameters: Mapping[str, Sequence[str]], policies: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """(names in an address that cannot be used, a sentence on them), () and "" where all can be."""
    message = {}
    for name in NAMES:
        wrong = _wrong(name, parameters.get(name, ()), policies)
        if wrong:
            message[name] = f"its {_CALLED[name]} ({wrong})"
    return tuple(message), f"This link was opened without {', '.join(message.values())}." if message else ""


def _wrong(name: str, values: Sequence[str], policies: Sequence[str]) -> str:
    if name not in (ACTION, POLICY, FEEDBACK, ENDING) and len(values) > 1:
        return f"expected it once, found it {len(values)} times"
    known = {ACTION: ACTIONS, POLICY: policies, WHEN: TIMES, FEEDBACK: FEEDBACKS, ENDING: ENDINGS}.get(name)
    for value in values:
        if known is not None and value not in known:
            return (
                f"{_show(value)} is none of {', '.join(map(clean, known))}" if known else f"{_show(value)} is unknown"
            )
        if name in (SINCE, UNTIL) and value and not _is_day(value):
            return f"expected a day as 2026-01-31, from {FIRST_DAY} to {LAST_DAY}, found {_show(value)}"
        if name == TEXT and len(value) > LONGEST_TEXT:
            return f"expected at most {LONGEST_TEXT} signs, found {len(value)}"
    return ""


def _is_day(text: str) -> bool:
    try:
        return FIRST_DAY <= date.fromisoformat(text) <= LAST_DAY
    except ValueError:
        return False


def _midnight(day: date | None, now: datetime) -> float | None:
    return None if day is None else datetime.combine(day, time(), now.tzinfo).timestamp()


def _show(text: str) -> str:
    return shortened(repr(clean(text)), 40)
