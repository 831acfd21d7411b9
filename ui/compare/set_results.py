"""Results of a labelled set under the configurations of the Compare page, and the earlier results beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import streamlit as st

from crag_core.base.text.display import counted
from crag_core.experiments.comparison.setups import Earlier, KeptSetup, Setup, earlier_results
from crag_core.experiments.comparison.table import Outcomes, Table
from crag_core.experiments.labelled.questions import LabelledQuestion, LabelledSet
from crag_core.report.comparison.page import Comparison, described, render_comparison
from ui.compare import compare_state
from ui.compare.side_by_side import LETTERS
from ui.session import access, app_state, tune_state
from ui.shell.text import plain

MOST = 3
"""Earlier results beside the present configurations."""
_SEEN = 6
"""Rows that are seen at once; the others by scrolling."""


@dataclass(frozen=True)
class Compared:
    """`table` has the present configurations and then `beside`; only `beside` where the present ones have run nothing.

    `letters` are those of the table's configurations. `missing` counts the questions that some present configuration
    has not run.
    """

    table: Table
    letters: str
    beside: tuple[Earlier, ...]
    missing: int


def compared(questions: Sequence[LabelledQuestion], beside: Sequence[Earlier]) -> Compared:
    """On the questions that all of them have run; computed once for the same results. Raises `CragError`."""
    setups, experiments = _setups(questions), app_state.workbench().experiments
    stores = {name: experiments.outcomes(setup) for name, setup in setups.items()}
    done = tuple((setups[name].fingerprint, name, len(store.keys())) for name, store in stores.items())
    key = (tuple(questions), done, tuple(beside))
    kept = st.session_state.get("versus_table")
    if kept is None or kept[0] != key:
        now: dict[str, Outcomes] = {name: store.load() for name, store in stores.items()}
        then = {one.name: _outcomes(one.kept) for one in beside}
        own = Table(questions, now)
        table = Table(questions, now | then if own.questions else then) if beside else own
        kept = st.session_state["versus_table"] = (key, table, own.left_out)
    table = kept[1]
    first = len(setups) - (len(table.names) - len(beside))
    return Compared(table, LETTERS[first : first + len(table.names)], tuple(beside), kept[2])


def page(labelled: LabelledSet, found: Compared) -> str:
    """The table as one HTML page; computed once for each table."""
    kept = st.session_state.get("versus_page")
    if kept is None or kept[0] is not found.table:
        setups = _setups(labelled.questions) | {one.name: one.kept.setup for one in found.beside}
        lines = {name: described(setups[name].settings, setups[name].web) for name in found.table.names}
        created = datetime.now(UTC).isoformat(timespec="seconds")
        message = Comparison(labelled.name, created, lines, remarks=[one.remark for one in found.beside])
        kept = st.session_state["versus_page"] = (found.table, render_comparison(found.table, message))
    return str(kept[1])


def letter_of(name: str) -> str:
    """Of a present configuration."""
    return LETTERS[[one.name for one in compare_state.configurations()].index(name)]


# Earlier results


def earlier(questions: Sequence[LabelledQuestion]) -> tuple[Earlier, ...]:
    """Kept results that hold some of `questions` and are none of the present configurations, the newest first."""
    kept, keys = app_state.workbench().experiments.setups(), {asked.key for asked in questions}
    return earlier_results(kept, keys, _setups(questions), datetime.now(app_state.time_zone()), _outcomes)


def beside(found: Sequence[Earlier]) -> tuple[Earlier, ...]:
    """Those of `found` that were put beside the present configurations, at most `MOST`."""
    chosen = st.session_state.get("versus_beside", ())
    return tuple(one for one in found if one.kept.fingerprint in chosen)[:MOST]


def put(one: Earlier, is_beside: bool) -> None:
    """For a callback."""
    chosen: tuple[str, ...] = st.session_state.get("versus_beside", ())
    others = tuple(fingerprint for fingerprint in chosen if fingerprint != one.kept.fingerprint)
    st.session_state["versus_beside"] = (*others, one.kept.fingerprint) if is_beside else others


@app_state.reporting()
def delete(one: Earlier, questions: Sequence[LabelledQuestion]) -> None:
    """For a callback: what it holds of `questions`; other results stay."""
    access.require_administrator()
    put(one, False)
    app_state.workbench().experiments.outcomes(one.kept).clear({asked.key for asked in questions})
    compare_state.kept_outcomes.clear()


def _outcomes(kept: KeptSetup) -> Outcomes:
    return compare_state.kept_outcomes(str(app_state.settings().home), kept.fingerprint, len(kept.keys), kept)


def _setups(questions: Sequence[LabelledQuestion]) -> dict[str, Setup]:
    """Of the present configurations, by name."""
    workbench = app_state.workbench()
    corpus = tune_state.corpus_of(questions, app_state.choice().collection)
    return {one.name: workbench.setup(one.choice, corpus) for one in compare_state.configurations()}


# --- earlier results on the page --------------------------------------------------------------------------------------


def draw_earlier_results(found: Sequence[Earlier], questions: Sequence[LabelledQuestion]) -> None:
    """The list, with a tick for those that are in the table."""
    st.subheader("Earlier results", anchor=False)
    if not found:
        st.caption(
            "None yet. After a change of documents, policy, thresholds or models, the results until then appear here."
        )
        return
    st.caption(
        f"The same questions before a change. Tick up to {MOST} to add them to table, chart and files; nothing is run "
        "again."
    )
    chosen = beside(found)
    is_full = len(chosen) >= MOST
    with st.container(border=True, gap="small", height=72 * _SEEN if len(found) > _SEEN else "content"):
        for one in found:
            _draw_one(one, questions, one in chosen, is_full and one not in chosen)


def _draw_one(one: Earlier, questions: Sequence[LabelledQuestion], is_beside: bool, is_off: bool) -> None:
    key = f"versus_beside_{one.kept.fingerprint}"
    left, right = st.columns([5, 1], vertical_alignment="top", gap="small")
    with left.container(gap="xxsmall"):
        st.checkbox(f"**{plain(one.name)}**", is_beside, key=key, on_change=_put, args=(one, key), disabled=is_off)
        st.caption(f"{len(one.asked)} of {counted(len(questions), 'question')}. {_unlike(one)}")
    if not access.is_administrator():
        return
    with right.container(horizontal_alignment="right"), st.popover("Delete", type="tertiary"):
        st.markdown(
            f"Delete **{plain(one.name)}**, {counted(len(one.asked), 'question')}? Other results, the set and the "
            "documents stay. This cannot be undone."
        )
        st.button(
            "Delete it", on_click=delete, args=(one, questions), icon=":material/delete:",
            key=f"versus_delete_{one.kept.fingerprint}",
        )  # fmt: skip


def draw_beside(found: Compared) -> None:
    """How the earlier results in the table differ from the present configurations."""
    if not found.beside:
        return
    letters = dict(zip(found.table.names, found.letters, strict=True))
    message = [
        f":material/history: **{letters[one.name]} · {plain(one.name)}** is an earlier result. {_unlike(one)}"
        for one in found.beside
    ]
    others = [letters[one.name] for one in found.beside if one.has_other_documents]
    if others:
        named = " and ".join([", ".join(others[:-1]), others[-1]] if others[1:] else others)
        message.append(f"{named} had other documents; a difference may come from these.")
    message.append("Their times are those of then.")
    st.caption("  \n".join(message))


def _unlike(one: Earlier) -> str:
    """The settings that differed, as Markdown."""
    return plain(f"Unlike {letter_of(one.like)} · {one.like}: {', '.join(one.differs)}.")


def _put(one: Earlier, key: str) -> None:
    put(one, st.session_state[key])
