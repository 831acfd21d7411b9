"""What people say of a run, on its way between the page and the history."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.types import Action
from crag_core.trace.feedback import About, Label, Mark, of_answer, of_passage, of_route
from ui.session import access, app_state, current_run
from ui.session.current_run import View


def can_label() -> bool:
    history = app_state.workbench().history
    return history.is_on and not history.problem


def said(run_id: str) -> dict[tuple[About, str], Label]:
    """The labels of a run, by what they are about; none where the history does not answer. Read once a run."""
    kept: tuple[str, dict[tuple[About, str], Label]] = st.session_state.get("labels", ("", {}))
    if kept[0] != run_id:
        kept = (run_id, _read(run_id))
        st.session_state["labels"] = kept
    return kept[1]


def _read(run_id: str) -> dict[tuple[About, str], Label]:
    try:
        return {(label.about, label.target): label for label in app_state.workbench().history.labels(run_id)}
    except CragError:
        return {}


def label_passage(passage_id: str, mark: Mark | None) -> None:
    """For a callback: keep a mark of a passage, or with None take it back."""
    if view := current_run.view():
        now = mark or Mark.RELEVANT
        _keep(view, of_passage(view.trace, view.policy, passage_id, now, _now()), is_kept=mark is not None)


def label_run(about: About, mark: Mark | None, expected: Action | None) -> None:
    """For a callback: the same for the route on the screen, or for the answer."""
    if view := current_run.view():
        now, action = mark or Mark.RIGHT, view.routed.decision.action
        label = (
            of_route(view.trace, view.policy, action, now, _now(), expected)
            if about is About.ROUTE
            else of_answer(view.trace, view.policy, now, _now())
        )
        _keep(view, label, is_kept=mark is not None)


def _keep(view: View, label: Label | None, *, is_kept: bool) -> None:
    if label is None:
        return
    history = app_state.workbench().history
    st.session_state.pop("labels", None)
    try:
        if not is_kept:
            history.remove_label(label)
            return
        if history.find(view.taken.id) is None:  # such as a recorded run, which nobody has kept so far
            history.save_import(view.taken, access.user())
        history.add_label(label)
    except CragError as error:
        app_state.report(str(error))
        st.rerun()  # the whole page, which has the place for it


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
