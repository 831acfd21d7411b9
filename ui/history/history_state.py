"""State of the History page, and its actions on recorded runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import streamlit as st

from crag_core.storage.history.run_filter import EVERYTHING, Selection
from crag_core.storage.history.run_summary import KeptRun
from crag_core.trace.trace import Trace
from ui.history import filter
from ui.history.filter import Filter
from ui.history.import_export import Imported, take_in, to_csv, to_lines
from ui.session import access, app_state, current_run, run_job

A_PAGE = 25
PAGE, REFRESH = "history_page", "history_refresh"
_PINNED, _IMPORTED, _ROUND = "history_pinned", "history_imported", "history_round"
_ASKED = "history_asked"


@dataclass(frozen=True)
class Listed:
    """A page of the list. `selection` is what it is a page of, `count` how many that are, `of` how many there are."""

    selection: Selection
    runs: tuple[KeptRun, ...]
    count: int
    of: int
    page: int

    @property
    def pages(self) -> int:
        return max(1, math.ceil(self.count / A_PAGE))


def scope() -> str | None:
    """Whose runs this visitor may see: None everybody's, else those of this address."""
    return None if access.may(access.Right.SEE_HISTORY) else access.user()


def policies() -> dict[str, str]:
    """The policies that occur, by name, with their titles; those that are not here any more by their names."""
    known = app_state.policies()
    found = app_state.workbench().history.policies(replace(EVERYTHING, asked_by=scope()))
    return {name: known[name].title if name in known else name for name in found}


def check_address(titles: Sequence[str]) -> None:
    """Before the fields are drawn, which would take it up: what this address asks for and cannot be is told, once."""
    given = {name: st.query_params.get_all(name) for name in filter.NAMES if name in st.query_params}
    names, problem = filter.refused(given, titles)
    if names:
        for name in names:
            del st.query_params[name]
            st.session_state.pop(name, None)
        app_state.report(problem)
        st.rerun()


def chosen() -> Filter:
    """As the fields have it."""
    kept = st.session_state
    return Filter(
        text=kept.get(filter.TEXT) or "",
        actions=tuple(kept.get(filter.ACTION) or ()),
        policies=tuple(kept.get(filter.POLICY) or ()),
        when=kept.get(filter.WHEN) or filter.ANY_TIME,
        since=kept.get(filter.SINCE),
        until=kept.get(filter.UNTIL),
        feedback=tuple(kept.get(filter.FEEDBACK) or ()),
        endings=tuple(kept.get(filter.ENDING) or ()),
    )


def clear_filter() -> None:
    """For a callback."""
    empty = {
        filter.TEXT: "",
        filter.WHEN: filter.ANY_TIME,
        filter.SINCE: None,
        filter.UNTIL: None,
    }
    for name in filter.NAMES:
        st.session_state[name] = empty.get(name, [])


def listed(wanted: Filter, titles: dict[str, str]) -> Listed:
    """The page that is looked at; what comes in meanwhile is not in it, so that no row moves under a selection."""
    history, own = app_state.workbench().history, scope()
    everything = replace(EVERYTHING, asked_by=own)
    pinned = _pinned(wanted, everything)
    selection = wanted.selection(datetime.now(zone()), titles, own)
    if pinned is not None:
        selection = replace(selection, until=pinned if selection.until is None else min(pinned, selection.until))
    count = history.count(selection)
    pages = max(1, math.ceil(count / A_PAGE))
    page = min(max(int(st.session_state.get(PAGE) or 1), 1), pages)
    runs = history.search(selection, A_PAGE, (page - 1) * A_PAGE)
    return Listed(selection, runs, count, history.count(replace(everything, until=pinned)), page)


def look_again() -> None:
    """For a callback: with what has come in since."""
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


def open_on_ask(trace: Trace) -> None:
    """Show it on the Ask page as it was taken, the sidebar too where it knows the policy."""
    if trace.settings.policy.name in app_state.policies():
        current_run.open_later(trace)
    else:
        current_run.open_run(trace, own_settings=False)
    st.switch_page("pages/ask.py", query_params={})  # else those that the sidebar is bound to would be in the way


def ask_about(selection: Selection, count: int) -> None:
    """For a callback: deleting these is asked about, until `leave`."""
    st.session_state[_ASKED] = selection, count


def asked_about() -> tuple[Selection, int] | None:
    asked: tuple[Selection, int] | None = st.session_state.get(_ASKED)
    return asked


def leave() -> None:
    """For a callback too: nothing is asked about any more."""
    st.session_state.pop(_ASKED, None)


def delete(selection: Selection) -> int:
    """With what was said of them; nobody deletes what he may not see. How many runs there were."""
    deleted = app_state.workbench().history.delete_all(replace(selection, asked_by=_narrowed(selection)))
    look_again()
    return deleted


def lines(selection: Selection) -> bytes:
    return to_lines(app_state.workbench().history.export(replace(selection, asked_by=_narrowed(selection))))


def table(selection: Selection) -> bytes:
    found = app_state.workbench().history.search(replace(selection, asked_by=_narrowed(selection)), limit=10**6)
    return to_csv(found, zone())


def import_file(content: bytes, on_progress: Callable[[float], object]) -> None:
    """Into the history, as this visitor's; what became of it is told at the next redraw. Raises `CragError`."""
    st.session_state[_IMPORTED] = take_in(content, run_job.keep_import, on_progress)
    st.session_state[_ROUND] = import_round() + 1
    look_again()


def import_round() -> int:
    """Numbers the uploader, so that it is empty again after its file was taken."""
    return int(st.session_state.setdefault(_ROUND, 0))


def take_imported() -> Imported | None:
    done: Imported | None = st.session_state.pop(_IMPORTED, None)
    return done


def zone() -> tzinfo:
    """The visitor's; UTC where the browser does not tell."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (KeyError, ValueError, OSError):
        return UTC


def format_time(run: KeptRun) -> str:
    return datetime.fromtimestamp(run.kept_at, zone()).strftime("%Y-%m-%d %H:%M")


def _narrowed(selection: Selection) -> str | None:
    own = scope()
    return selection.asked_by if own is None else own
