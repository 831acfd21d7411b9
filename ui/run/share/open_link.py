"""Opens runs from a link or a file."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from crag_core.app.workbench import known_card
from crag_core.base.errors import CragError
from crag_core.evaluators import EVALUATORS
from crag_core.trace.edits import measured
from crag_core.trace.trace import Trace
from ui.run.share.share import draw_import, draw_share
from ui.run.share.share_links import (
    DROPPED,
    EVALUATOR,
    PINNED,
    POLICY,
    STRIPS,
    THRESHOLDS,
    SharedView,
    Titles,
    edits_of,
    link_parameters,
    parse_link,
)
from ui.session import app_state, current_run, run_job
from ui.session.demos import demo_of


def follow() -> None:
    """For app.py, before the sidebar is drawn: at a session's first visit open, or follow, the run of its address."""
    if st.session_state.get("followed"):
        return
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    asked = parse_link(given, _titles())
    if asked.problem:
        app_state.report(asked.problem)
        st.query_params.from_dict(link_parameters(asked, _titles()))  # the widgets would take up what was refused
        st.rerun()
    st.session_state["followed"] = True
    for edit in (DROPPED, PINNED):
        st.query_params.pop(edit, None)
    for name in (POLICY, EVALUATOR, THRESHOLDS, STRIPS):
        if (value := getattr(asked, name)) is not None:
            st.session_state[name] = value
    if asked.run_id is None or run_job.rejoin(asked.run_id):
        return
    try:
        found = _find(asked.run_id)
    except CragError as error:
        app_state.report(str(error))
        return
    if found is None:
        app_state.report(f"The run {asked.run_id} of this link is not kept here. Ask its question again.")
    else:
        _open(found, asked)


@st.fragment(key=current_run.SHARING)
def draw_sharing(busy: bool) -> None:
    """The buttons that send what is on the page, also after a threshold was moved, and open what was sent."""
    current_run.mark_drawn(current_run.SHARING)
    view = current_run.view()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if view is not None and not busy:
            history = app_state.workbench().history
            is_kept = history.is_on and not history.problem
            no_link = "" if is_kept or demo_of(view.taken.id) else history.problem or "runs are not kept (CRAG_HISTORY)"
            draw_share(view.taken, view.trace, view.policy, _titles(), st.context.url, no_link)
        with st.popover("Open a record", icon=":material/file_open:", type="tertiary", disabled=busy):
            draw_import(_take, f"record_{st.session_state.setdefault('records', 0)}")


def draw_share_of(kept: Trace) -> None:
    """For the History page: a kept run as it was taken; the link leads to the Ask page."""
    url = (st.context.url or "").partition("?")[0].rstrip("/").removesuffix("/history")
    draw_share(kept, kept, kept.settings.policy, _titles(), url or None, "")


def _take(found: Trace) -> None:
    """Show an imported run; the next redraw has an empty uploader."""
    st.session_state["records"] += 1
    with suppress(CragError):  # where nothing is kept it can be looked at all the same
        found = run_job.keep_import(found)
    current_run.open_later(found)
    st.rerun()


def _find(run_id: str) -> Trace | None:
    demo = demo_of(run_id)
    return demo.trace if demo else app_state.workbench().history.load(run_id)


def _open(found: Trace, asked: SharedView) -> None:
    edits, lost = edits_of(asked, found)
    if lost:
        app_state.report(lost)
    current_run.remember(found)
    app_state.show(found)
    app_state.use_settings_of(found, but={name: value for name, value in vars(asked).items() if value is not None})
    if edits:
        st.session_state["edits"] = measured(found, edits, app_state.workbench().meter)
    st.session_state["ask_question"] = found.question


def _titles() -> Titles:
    policies = {name: policy.title for name, policy in app_state.policies().items()}
    return Titles(policies, {name: known_card(name).title for name in EVALUATORS})
