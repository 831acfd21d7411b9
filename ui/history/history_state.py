"""State of the History page, and its actions on recorded runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import streamlit as st

from crag_core.storage.history.runs import EVERYTHING, KeptRun, Selection
from crag_core.trace.trace import Trace
from ui.history import filter
from ui.history.filter import Filter
from ui.history.import_export import Imported, take_in, to_csv, to_lines
from ui.session import access, app_state, run_job

A_PAGE = 25
PAGE, REFRESH = "history_page", "history_refresh"
_PINNED, _IMPORTED, _ROUND = "history_pinned", "history_imported", "history_round"
_ASKED = "history_asked"


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
    return None if access.may(access.Right.SEE_HISTORY) else access.user()


def policies() -> dict[str, str]:
    """Titles by name of the policies that occur; of one that is no longer here the name."""
    known = app_state.policies()
    found = app_state.workbench().history.policies(replace(EVERYTHING, asked_by=scope()))
    return {name: known[name].title if name in known else name for name in found}


def check_address(policy_titles: Collection[str]) -> None:
    """Before the fields are drawn, which would take the values: remove and report those that cannot be used."""
    given = {name: st.query_params.get_all(name) for name in filter.TITLES if name in st.query_params}
    if names := filter.unusable(given, policy_titles):
        for name in names:
            del st.query_params[name]
            st.session_state.pop(name, None)
        left_out = ", ".join(f"its {filter.TITLES[name]}" for name in names)
        app_state.report(f"This link was opened without {left_out}: there is no such choice here.")
        st.rerun()


def clear_filter() -> None:
    """For a callback."""
    lists: dict[str, Any] = {name: [] for name in (filter.ACTION, filter.POLICY, filter.FEEDBACK, filter.ENDING)}
    others = {filter.TEXT: "", filter.WHEN: filter.ANY_TIME, filter.SINCE: None, filter.UNTIL: None}
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
    st.session_state.pop(_PINNED, None)


def newer(shown_now: Listed) -> int:
    """How many of this visitor's runs have come in since."""
    pinned = st.session_state.get(_PINNED, (None, None))[1]
    if pinned is None:
        return 0
    return app_state.workbench().history.count(Selection(since=pinned, asked_by=shown_now.selection.asked_by))


def _pinned(wanted: Filter, everything: Selection) -> float | None:
    """Just after the newest run at the time when the page was entered, or the filter changed; None: there was none.

    Not the time of the clock: it may have been put back.
    """
    entered = REFRESH not in st.session_state  # a button's key goes when the page is left
    if entered:
        leave()
    kept: tuple[Filter, float | None] | None = st.session_state.get(_PINNED)
    if entered or kept is None or kept[0] != wanted or kept[1] is None:
        newest = app_state.workbench().history.search(everything, 1)
        until = math.nextafter(newest[0].kept_at, math.inf) if newest else None
        kept = st.session_state[_PINNED] = (wanted, until)
    return kept[1]


def load(run: KeptRun) -> Trace | None:
    """None for one that was deleted meanwhile, and for one that this visitor may not see; raises `CragError`."""
    own = scope()
    return app_state.workbench().history.load(run.id) if own in (None, run.asked_by) else None


def confirm(selection: Selection, count: int) -> None:
    """For a callback: the page asks whether to delete these, until `leave`."""
    st.session_state[_ASKED] = selection, count


def to_confirm() -> tuple[Selection, int] | None:
    asked: tuple[Selection, int] | None = st.session_state.get(_ASKED)
    return asked


def leave() -> None:
    """For a callback too: nothing is to be confirmed any more."""
    st.session_state.pop(_ASKED, None)


def delete(selection: Selection) -> int:
    """With their labels; returns how many runs there were."""
    deleted = app_state.workbench().history.delete_all(_own(selection))
    look_again()
    return deleted


def lines(selection: Selection) -> bytes:
    return to_lines(app_state.workbench().history.export(_own(selection)))


def table(selection: Selection) -> bytes:
    return to_csv(app_state.workbench().history.search(_own(selection), limit=10**6), app_state.time_zone())


def import_file(content: bytes, on_progress: Callable[[float], object]) -> None:
    """Into the history, as this visitor's; the page shows the result at the next redraw. Raises `CragError`."""
    st.session_state[_IMPORTED] = take_in(content, run_job.keep_import, on_progress)
    st.session_state[_ROUND] = import_round() + 1
    look_again()


def import_round() -> int:
    """Numbers the uploader, so that it is empty again after its file was taken."""
    return int(st.session_state.setdefault(_ROUND, 0))


def take_imported() -> Imported | None:
    done: Imported | None = st.session_state.pop(_IMPORTED, None)
    return done


def format_time(run: KeptRun) -> str:
    return datetime.fromtimestamp(run.kept_at, app_state.time_zone()).strftime("%Y-%m-%d %H:%M")


def _own(selection: Selection) -> Selection:
    """Nobody deletes or exports what they may not see."""
    own = scope()
    return selection if own is None else replace(selection, asked_by=own)
