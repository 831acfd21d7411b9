"""What a labelled set came to under the configurations of the Compare page, and what of earlier stands beside them; the
only place of that state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import streamlit as st

from crag_core.app.configuration_text import Configuration
from crag_core.experiments.comparison.earlier_results import Earlier, earlier_results
from crag_core.experiments.comparison.run_configurations import OutcomeKeeper
from crag_core.experiments.comparison.setup import KeptSetup, Setup
from crag_core.experiments.comparison.table import Outcomes, Table
from crag_core.experiments.labelled.questions import LabelledQuestion, LabelledSet
from crag_core.report.comparison.page import Comparison, described, render_comparison
from ui.compare import compare_state
from ui.session import access, app_state, tune_state
from ui.session.access import Right

LETTERS = "ABCDEFG"
MOST = 3
"""Earlier results beside the configurations of now."""


@dataclass(frozen=True)
class Compared:
    """`table` has the configurations of now and then `beside`; only `beside` where now has run nothing.

    `letters` are those of the table's configurations. `missing` counts the questions that some configuration of now has
    not run.
    """

    table: Table
    letters: str
    beside: tuple[Earlier, ...]
    missing: int


def compared(questions: Sequence[LabelledQuestion], beside: Sequence[Earlier]) -> Compared:
    """On the questions that all of them have run; worked out once. Raises `CragError`."""
    chosen = compare_state.configurations()
    books = {one.name: _book(one) for one in chosen}
    done = tuple((one, len(books[one.name].keys())) for one in chosen)
    key = (tuple(questions), _corpus(), done, tuple(beside))
    kept = st.session_state.get("versus_table")
    if kept is None or kept[0] != key:
        kept = (key, *_tables(questions, {name: book.load() for name, book in books.items()}, beside))
        st.session_state["versus_table"] = kept
    table: Table = kept[1]
    own: Table = kept[2]
    first = len(chosen) - (len(table.names) - len(beside))
    return Compared(table, LETTERS[first : first + len(table.names)], tuple(beside), own.left_out)


def page(labelled: LabelledSet, found: Compared) -> str:
    """The table as one HTML page; worked out once for each table."""
    kept = st.session_state.get("versus_page")
    if kept is None or kept[0] is not found.table:
        setups = _setups() | {one.name: one.kept.setup for one in found.beside}
        lines = {name: described(setups[name].settings, setups[name].web) for name in found.table.names}
        created = datetime.now(UTC).isoformat(timespec="seconds")
        message = Comparison(labelled.name, created, lines, remarks=[one.remark for one in found.beside])
        kept = (found.table, render_comparison(found.table, message))
        st.session_state["versus_page"] = kept
    made: str = kept[1]
    return made


def letter_of(name: str) -> str:
    """Of a configuration of now."""
    return LETTERS[[one.name for one in compare_state.configurations()].index(name)]


# Earlier results


def earlier(questions: Sequence[LabelledQuestion]) -> tuple[Earlier, ...]:
    """Kept results that hold some of `questions` and are none of the configurations of now, the newest first."""
    kept, keys = app_state.workbench().experiments.setups(), {asked.key for asked in questions}
    return earlier_results(kept, keys, _setups(), datetime.now(_zone()), _outcomes)


def beside(found: Sequence[Earlier]) -> tuple[Earlier, ...]:
    """Those of `found` that were put beside the configurations of now, at most `MOST`."""
    chosen = _chosen()
    return tuple(one for one in found if one.kept.fingerprint in chosen)[:MOST]


def put(one: Earlier, is_beside: bool) -> None:
    """For a callback."""
    others = tuple(fingerprint for fingerprint in _chosen() if fingerprint != one.kept.fingerprint)
    st.session_state["versus_beside"] = (*others, one.kept.fingerprint) if is_beside else others


def forget(one: Earlier, questions: Sequence[LabelledQuestion]) -> None:
    """For a callback: what it holds of `questions`; whatever else was run stays. Raises `CragError`."""
    access.require(Right.TUNE)
    put(one, False)
    app_state.workbench().experiments.outcomes(one.kept).clear({asked.key for asked in questions})
    compare_state.kept_outcomes.clear()


def _chosen() -> tuple[str, ...]:
    found: tuple[str, ...] = st.session_state.get("versus_beside", ())
    return found


def _tables(
    questions: Sequence[LabelledQuestion], now: dict[str, Outcomes], beside: Sequence[Earlier]
) -> tuple[Table, Table]:
    """With earlier results, and of now alone."""
    own = Table(questions, now)
    if not beside:
        return own, own
    then: dict[str, Outcomes] = {one.name: _outcomes(one.kept) for one in beside}
    return Table(questions, now | then if own.questions else then), own


def _outcomes(kept: KeptSetup) -> Outcomes:
    return compare_state.kept_outcomes(str(app_state.settings().home), kept.fingerprint, len(kept.keys), kept)


def _setups() -> dict[str, Setup]:
    """Of the configurations of now, by name."""
    corpus, workbench = _corpus(), app_state.workbench()
    return {one.name: workbench.setup(one.choice, corpus) for one in compare_state.configurations()}


def _book(one: Configuration) -> OutcomeKeeper:
    workbench = app_state.workbench()
    return workbench.experiments.outcomes(workbench.setup(one.choice, _corpus()))


def _corpus() -> str:
    return tune_state.corpus(str(app_state.settings().home), app_state.choice().collection)


def _zone() -> ZoneInfo | None:
    """Of the browser; None, the machine's, where that is not known."""
    try:
        return ZoneInfo(st.context.timezone) if st.context.timezone else None
    except (KeyError, ValueError, OSError):  # no such zone, or none at all on this machine
        return None
