"""The History page: filter and list of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import streamlit as st

from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import clean, counted
from crag_core.base.types.decisions import Action
from crag_core.evaluators import EVALUATORS
from crag_core.evaluators.policies import known_card
from crag_core.storage.history.runs import Feedback, KeptRun, Selection
from crag_core.trace.feedback import Mark
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.summary import Ending
from crag_core.view.run_view import model_name
from ui.history import history_state
from ui.history.history_state import Listed
from ui.session import access, app_state
from ui.shell.text import plain

SIGNS = {Action.CORRECT: "✓", Action.AMBIGUOUS: "?", Action.INCORRECT: "✗"}
_TABLE_HEIGHT, _ROW_HEIGHT = 460, 35
_SHORT_TABLE = 6 * _ROW_HEIGHT  # what is selected shall be seen below it
_LISTS = {
    "Action": "history_action", "Policy": "history_policy", "Feedback": "history_feedback", "Ending": "history_ended",
}  # fmt: skip
_TEXT, _WHEN = "history_text", "history_when"
"""Keys of the fields, and names in the address."""
_ACTIONS: dict[str, Action | None] = {one.value.capitalize(): one for one in Action} | {"Undecided": None}
_FEEDBACK = {one.value.capitalize(): one for one in Feedback}
_ENDED = {one.value.capitalize(): one for one in Ending}
_MARKS = {Mark.RIGHT: "✓", Mark.WRONG: "✗"}
_ENDINGS = {Ending.DONE: "done", Ending.FAILED: "✗ failed", Ending.STOPPED: "■ stopped", Ending.WAITING: "… waiting"}


def draw_filter(titles: Mapping[str, str]) -> Selection:
    """The fields, which are part of the address, so that it can be sent and survives a reload.

    `titles` are those of policies by name.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        text = st.text_input(
            "Question or answer", key=_TEXT, type="search", icon=":material/search:", width=190,
            placeholder="part of its text", max_chars=200, bind="query-params", persist_state="session",
        )  # fmt: skip
        known = sorted(set(titles.values()), key=str.casefold)
        options = {"Action": _ACTIONS, "Policy": known, "Feedback": _FEEDBACK, "Ending": _ENDED}
        actions, policies, feedback, endings = (
            st.multiselect(
                label, list(options[label]), key=key, width=145, placeholder="any", format_func=clean,
                select_all=False, bind="query-params", persist_state="session",
            )
            for label, key in _LISTS.items()
        )  # fmt: skip
        times = (history_state.ANY_TIME, history_state.TODAY, *history_state.DAYS)
        when = st.selectbox("Time", times, key=_WHEN, width=130, bind="query-params", persist_state="session")
    return Selection(
        actions=tuple(_ACTIONS[word] for word in actions),
        policies=tuple(name for name, title in titles.items() if title in policies),
        endings=tuple(_ENDED[word] for word in endings),
        feedback=tuple(_FEEDBACK[word] for word in feedback),
        since=history_state.since(when, datetime.now(app_state.time_zone())),
        text=(text or "").strip(),
        asked_by=history_state.scope(),
    )


def _clear_filter() -> None:
    lists: dict[str, object] = {key: [] for key in _LISTS.values()}
    st.session_state.update(lists | {_TEXT: "", _WHEN: history_state.ANY_TIME})


def draw_head(found: Listed, days: float) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        runs = "1 run" if found.of == 1 else f"{found.of:,} runs"
        st.subheader(runs if found.count == found.of else f"{found.count:,} of {runs}", anchor=False, width="content")
        st.button(
            f"Show {counted(found.newer, 'new run')}" if found.newer else "Refresh", icon=":material/refresh:",
            type="tertiary", key=history_state.REFRESH, on_click=history_state.look_again,
        )  # fmt: skip
        if found.is_filtered:
            st.button(
                "Clear filter", icon=":material/filter_alt_off:", on_click=_clear_filter,
                type="tertiary", key="history_clear",
            )  # fmt: skip
    is_own = history_state.scope() is not None
    own = f" Your own runs only. {access.refusal('see the runs of others')}" if is_own else ""
    st.caption(plain(f"{retention(days)}{own}"))


def retention(days: float) -> str:
    if not days:
        return "Kept without limit. CRAG_HISTORY_DAYS sets one."
    kept = counted(int(days), "day") if days == int(days) else f"{days:g} days"
    return f"Kept for {kept}, labels included (CRAG_HISTORY_DAYS)."


def draw_table(found: Listed) -> tuple[KeptRun, ...]:
    """A page of the list, newest first; gives those that are selected."""
    # By what is in it: a selection is one of places, and must not pass to other runs.
    key = f"history_table_{fingerprint(tuple(run.id for run in found.runs))}"
    is_picked = key in st.session_state and st.session_state[key].selection.rows
    picked = st.dataframe(
        _rows(found.runs),
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        key=key,
        placeholder="–",
        height=min(_SHORT_TABLE if is_picked else _TABLE_HEIGHT, _ROW_HEIGHT * (len(found.runs) + 1) + 2),
        alt="Runs with action, score, question, time, policy, seconds and LLM calls",
        column_config={
            "action": st.column_config.TextColumn(width=110),
            "score": st.column_config.NumberColumn(format="%.2f", width=60, help="What the policy compared"),
            "question": st.column_config.TextColumn(width=300),
            "kept": st.column_config.DatetimeColumn("when", format="YYYY-MM-DD HH:mm", help="In your time zone"),
            "seconds": st.column_config.NumberColumn(format="%.2f"),
            "LLM calls": st.column_config.NumberColumn(help="Without those reused from another run"),
            "policy": st.column_config.TextColumn(width=110),
            "evaluator": st.column_config.TextColumn(width=130),
            "model": st.column_config.TextColumn(width=110),
            "feedback": st.column_config.TextColumn(help="On route, answer and chunks"),
        },
    )
    if found.pages > 1:
        st.pagination(found.pages, key=history_state.PAGE)
    return tuple(found.runs[at] for at in picked.selection.rows if at < len(found.runs))


_ALIKE = ("evaluator", "model")
_USUAL = {"ended": _ENDINGS[Ending.DONE], "feedback": None}


def _rows(runs: Sequence[KeptRun]) -> list[dict[str, object]]:
    """Without the columns that would tell nothing: where all runs have one evaluator or model, or none has feedback."""
    rows = [_cells(run) for run in runs]
    values = {name: {row[name] for row in rows} for name in rows[0]}
    silent = {name for name in _ALIKE if len(values[name]) == 1 and len(rows) > 1}
    silent |= {name for name, usual in _USUAL.items() if values[name] == {usual}}
    return [{name: value for name, value in row.items() if name not in silent} for row in rows]


def _cells(run: KeptRun) -> dict[str, object]:
    known = app_state.policies()
    ending = _ENDINGS[run.ending] if run.is_readable else "not readable"
    said = [f"{_MARKS[mark]} {what}" for what, mark in (("route", run.route), ("answer", run.answer)) if mark in _MARKS]
    if run.labelled:
        said.append(counted(run.labelled, "chunk"))
    cells: dict[str, object] = {
        "action": f"{SIGNS[run.action]} {run.action}" if run.action else None,
        "score": run.score,
        "question": clean(run.question),
        "kept": datetime.fromtimestamp(run.kept_at, app_state.time_zone()),
        "policy": clean(known[run.policy].title if run.policy in known else run.policy),
        "evaluator": clean(known_card(run.evaluator).title if run.evaluator in EVALUATORS else run.evaluator),
        "model": "quotations" if run.writer == EXTRACTIVE else clean(model_name(run.writer)) or None,
        "seconds": run.seconds,
        "LLM calls": run.calls,
        "ended": f"{ending}, imported" if run.is_imported else ending,
        "feedback": ", ".join(said) or None,
    }
    if access.is_on() and history_state.scope() is None:
        cells["asked by"] = clean(run.asked_by) or None
    return cells
