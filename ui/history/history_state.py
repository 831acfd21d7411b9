"""The runs that the History page lists: those that match its filter, and none that came in since the list was made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta

import streamlit as st

from crag_core.storage.history.runs import KeptRun, Selection
from crag_core.trace.trace import Trace
from ui.session import access, app_state
from ui.session.keys import kept

A_PAGE = 25
PAGE, REFRESH = "history_page", "history_refresh"
ANY_TIME, TODAY = "Any time", "Today"
DAYS = {"7 days": 7, "30 days": 30}


@dataclass
class HistoryPage:
    """Runs that were kept before this are in the list."""

    until: float | None = None


@dataclass(frozen=True)
class Listed:
    """A page of the runs that match `selection`: `count` of all `of`; `newer` have come in since."""

    selection: Selection
    runs: tuple[KeptRun, ...]
    count: int
    of: int
    newer: int

    @property
    def pages(self) -> int:
        return max(1, math.ceil(self.count / A_PAGE))

    @property
    def is_filtered(self) -> bool:
        return replace(self.selection, until=None) != Selection(asked_by=self.selection.asked_by)


def scope() -> str | None:
    """Whose runs this visitor may see: None everybody's, else those of this person."""
    return None if access.is_administrator() else access.user()


def policies() -> dict[str, str]:
    """Titles by name of the policies that occur; of one that is no longer here the name."""
    known = app_state.policies()
    found = app_state.workbench().history.policies(Selection(asked_by=scope()))
    return {name: known[name].title if name in known else name for name in found}


def since(when: str, now: datetime) -> float | None:
    """`now` is in the visitor's time zone, whose midnight begins a day."""
    if when in DAYS:
        return (now - timedelta(days=DAYS[when])).timestamp()
    return datetime.combine(now.date(), time(), now.tzinfo).timestamp() if when == TODAY else None


def listed(wanted: Selection) -> Listed:
    """The current page. Runs that come in meanwhile are not in it, so that no row moves under a selection."""
    history, everything = app_state.workbench().history, Selection(asked_by=wanted.asked_by)
    until = _until(everything)
    wanted = replace(wanted, until=until)
    count = history.count(wanted)
    page = min(max(int(st.session_state.get(PAGE) or 1), 1), max(1, math.ceil(count / A_PAGE)))
    runs = history.search(wanted, A_PAGE, (page - 1) * A_PAGE)
    newer = 0 if until is None else history.count(replace(everything, since=until))
    return Listed(wanted, runs, count, history.count(replace(everything, until=until)), newer)


def _until(everything: Selection) -> float | None:
    """Just after the newest run at the time when the page was entered; None: there was none.

    Not the time of the clock: it may have been put back.
    """
    page = kept(HistoryPage)
    if REFRESH not in st.session_state:  # a button's key goes when the page is left
        page.until = None
    if page.until is None and (newest := app_state.workbench().history.search(everything, 1)):
        page.until = math.nextafter(newest[0].kept_at, math.inf)
    return page.until


def look_again() -> None:
    """For a callback: list the runs that have come in since, too."""
    kept(HistoryPage).until = None


def load(run: KeptRun) -> Trace | None:
    """None for one that was deleted meanwhile, and for one that this visitor may not see; raises `CragError`."""
    return app_state.workbench().history.load(run.id) if scope() in (None, run.asked_by) else None


def format_time(run: KeptRun) -> str:
    return datetime.fromtimestamp(run.kept_at, app_state.time_zone()).strftime("%Y-%m-%d %H:%M")
