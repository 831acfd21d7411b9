"""State of the Metrics page: period and policy, and the runs they select."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

import streamlit as st

from crag_core.observability.trends import Figures, figures, over_time
from crag_core.storage.history.run_filter import Selection
from crag_core.trace.summary import Measured
from ui.metrics.periods import edges
from ui.session import access, app_state

PERIODS = {"24 hours": timedelta(days=1), "7 days": timedelta(days=7), "30 days": timedelta(days=30), "All": None}
_FRESH_S = 15


@dataclass(frozen=True)
class Seen:
    """All in one, and each step of time by itself; `steps` has one entry more than `parts`."""

    whole: Figures
    parts: tuple[Figures, ...]
    steps: tuple[datetime, ...]


def seen(period: str, policy: str) -> Seen:
    """Of the last while, at most `_FRESH_S` old; `policy` "": of all. Raises `CragError`."""
    length, now = PERIODS[period], time.time() // _FRESH_S * _FRESH_S + _FRESH_S
    since = None if length is None else now - length.total_seconds()
    rows = _measured(_history_id(), _selection(since, policy))
    zone = app_state.time_zone()
    first = datetime.fromtimestamp(since if since is not None else rows[0].at if rows else now, zone)
    steps = edges(first, datetime.fromtimestamp(now, zone))
    return Seen(figures(rows), over_time(rows, [step.timestamp() for step in steps]), steps)


def policies() -> tuple[str, ...]:
    """Those that kept runs were made under."""
    return app_state.workbench().history.policies(_selection(None, ""))


def is_of_all() -> bool:
    """Whether this visitor sees the runs of others too."""
    return access.may(access.Right.SEE_HISTORY)


def _selection(since: float | None, policy: str) -> Selection:
    asked_by = None if is_of_all() else access.user()
    return Selection(policies=(policy,) if policy else (), since=since, asked_by=asked_by, imported=False)


@st.cache_data(ttl=_FRESH_S, max_entries=50, show_spinner=False)
def _measured(history: str, selection: Selection) -> tuple[Measured, ...]:
    return app_state.workbench().history.measured(selection)


def _history_id() -> str:
    """One history from another."""
    now = app_state.settings()
    return f"{now.home} {now.history}"
