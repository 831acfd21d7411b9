"""State of the History page: its filter, from fields that are part of the address, and the runs that match it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any

import streamlit as st

from crag_core.base.types.decisions import Action
from crag_core.storage.history.runs import EVERYTHING, Feedback, KeptRun, Selection
from crag_core.trace.summary import Ending
from crag_core.trace.trace import Trace
from ui.session import access, app_state
from ui.session.keys import kept

ACTION, POLICY, WHEN = "history_action", "history_policy", "history_when"
FEEDBACK, ENDING, TEXT = "history_feedback", "history_ended", "history_text"
"""Keys of the fields, and names in the address."""

ACTIONS: dict[str, Action | None] = {
    "Correct": Action.CORRECT,
    "Ambiguous": Action.AMBIGUOUS,
    "Incorrect": Action.INCORRECT,
    "Undecided": None,
}
ANY_TIME, TODAY, WEEK, MONTH = "Any time", "Today", "7 days", "30 days"
TIMES = (ANY_TIME, TODAY, WEEK, MONTH)
FEEDBACKS = {
    "Route right": Feedback.ROUTE_RIGHT,
    "Route wrong": Feedback.ROUTE_WRONG,
    "Answer right": Feedback.ANSWER_RIGHT,
    "Answer wrong": Feedback.ANSWER_WRONG,
    "None": Feedback.NONE,
}
ENDINGS = {"Done": Ending.DONE, "Failed": Ending.FAILED, "Stopped": Ending.STOPPED, "Waiting": Ending.WAITING}
LONGEST_TEXT = 200

_DAYS = {WEEK: 7, MONTH: 30}


@dataclass(frozen=True)
class Filter:
    """The values of the fields; an empty one filters nothing."""

    text: str = ""
    actions: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    when: str = ANY_TIME
    feedback: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()

    def selection(self, now: datetime, titles: Mapping[str, str], asked_by: str | None) -> Selection:
        """`now` is in the visitor's time zone, whose midnight begins a day. `titles` are those of policies by name."""
        return Selection(
            actions=tuple(ACTIONS[word] for word in self.actions),
            policies=tuple(name for name, title in titles.items() if title in self.policies),
            endings=tuple(ENDINGS[word] for word in self.endings),
            feedback=tuple(FEEDBACKS[word] for word in self.feedback),
            since=self._since(now),
            text=self.text.strip(),
            asked_by=asked_by,
        )

    def _since(self, now: datetime) -> float | None:
        if self.when in _DAYS:
            return (now - timedelta(days=_DAYS[self.when])).timestamp()
        return datetime.combine(now.date(), time(), now.tzinfo).timestamp() if self.when == TODAY else None


A_PAGE = 25
PAGE, REFRESH = "history_page", "history_refresh"


@dataclass
class HistoryPage:
    """The filter of the list with the time up to which runs are in it; what the page asks whether to delete."""

    listed: tuple[Filter, float | None] | None = None
    to_delete: tuple[Selection, int] | None = None


@dataclass(frozen=True)
class Listed:
    """A page of the runs that match `selection`: `count` of all `of`."""

    selection: Selection
    runs: tuple[KeptRun, ...]
    count: int
    of: int

    @property
    def pages(self) -> int:
        return max(1, math.ceil(self.count / A_PAGE))


def scope() -> str | None:
    """Whose runs this visitor may see: None everybody's, else those of this person."""
    return None if access.is_administrator() else access.user()


def policies() -> dict[str, str]:
    """Titles by name of the policies that occur; of one that is no longer here the name."""
    known = app_state.policies()
    found = app_state.workbench().history.policies(replace(EVERYTHING, asked_by=scope()))
    return {name: known[name].title if name in known else name for name in found}


def clear_filter() -> None:
    """For a callback."""
    lists: dict[str, Any] = {name: [] for name in (ACTION, POLICY, FEEDBACK, ENDING)}
    others = {TEXT: "", WHEN: ANY_TIME}
    st.session_state.update(lists | others)


def listed(wanted: Filter, titles: dict[str, str]) -> Listed:
    """The current page. Runs that come in meanwhile are not in it, so that no row moves under a selection."""
    history, own = app_state.workbench().history, scope()
    everything = replace(EVERYTHING, asked_by=own)
    pinned = _pinned(wanted, everything)
    selection = wanted.selection(datetime.now(app_state.time_zone()), titles, own)
    if pinned is not None:
        selection = replace(selection, until=pinned if selection.until is None else min(pinned, selection.until))
    count = history.count(selection)
    page = min(max(int(st.session_state.get(PAGE) or 1), 1), max(1, math.ceil(count / A_PAGE)))
    runs = history.search(selection, A_PAGE, (page - 1) * A_PAGE)
    return Listed(selection, runs, count, history.count(replace(everything, until=pinned)))


def look_again() -> None:
    """For a callback: list the runs that have come in since, too."""
    kept(HistoryPage).listed = None


def newer(shown_now: Listed) -> int:
    """How many of this visitor's runs have come in since."""
    listed = kept(HistoryPage).listed
    if listed is None or listed[1] is None:
        return 0
    return app_state.workbench().history.count(Selection(since=listed[1], asked_by=shown_now.selection.asked_by))


def _pinned(wanted: Filter, everything: Selection) -> float | None:
    """Just after the newest run at the time when the page was entered, or the filter changed; None: there was none.

    Not the time of the clock: it may have been put back.
    """
    entered = REFRESH not in st.session_state  # a button's key goes when the page is left
    if entered:
        leave()
    page = kept(HistoryPage)
    if entered or page.listed is None or page.listed[0] != wanted or page.listed[1] is None:
        newest = app_state.workbench().history.search(everything, 1)
        until = math.nextafter(newest[0].kept_at, math.inf) if newest else None
        page.listed = wanted, until
    return page.listed[1]


def load(run: KeptRun) -> Trace | None:
    """None for one that was deleted meanwhile, and for one that this visitor may not see; raises `CragError`."""
    own = scope()
    return app_state.workbench().history.load(run.id) if own in (None, run.asked_by) else None


def confirm(selection: Selection, count: int) -> None:
    """For a callback: the page asks whether to delete these, until `leave`."""
    kept(HistoryPage).to_delete = selection, count


def leave() -> None:
    """For a callback too: nothing is to be confirmed any more."""
    kept(HistoryPage).to_delete = None


def format_time(run: KeptRun) -> str:
    return datetime.fromtimestamp(run.kept_at, app_state.time_zone()).strftime("%Y-%m-%d %H:%M")
