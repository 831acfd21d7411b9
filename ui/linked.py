"""Runs that come by a link or a file, and the way there."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from crag_core import report
from crag_core.build import EVALUATORS, known_card
from crag_core.edits import measured
from crag_core.errors import CragError
from crag_core.trace import Trace
from ui import shown, state, under_way
from ui.demos import demo_of
from ui.links import (
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
from ui.render_share import draw_import, draw_share


def follow() -> None:
    """For app.py, before the sidebar is drawn: at a session's first visit open, or follow, the run of its address."""
    if st.session_state.get("followed"):
        return
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    asked = parse_link(given, _titles())
    if asked.problem:
        state.report(asked.problem)
        st.query_params.from_dict(link_parameters(asked, _titles()))  # the widgets would take up what was refused
        st.rerun()
    st.session_state["followed"] = True
    for edit in (DROPPED, PINNED):
        st.query_params.pop(edit, None)
    for name in (POLICY, EVALUATOR, THRESHOLDS, STRIPS):
        if (value := getattr(asked, name)) is not None:
            st.session_state[name] = value
    if asked.run_id is None or under_way.rejoin(asked.run_id):
        return
    try:
        found = _find(asked.run_id)
    except CragError as error:
        state.report(str(error))
        return
    if found is None:
        state.report(f"The run {asked.run_id} of this link is not kept here. Ask its question again.")
    else:
        _open(found, asked)


@st.fragment(key=shown.SHARING)
def draw_sharing(busy: bool) -> None:
    """The buttons that send what is on the page, also after a threshold was moved, and open what was sent."""
    shown.mark_drawn(shown.SHARING)
    view = shown.view()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if view is not None and not busy:
            history = state.workbench().history
            is_kept = history.is_on and not history.problem
            no_link = "" if is_kept or demo_of(view.taken.id) else history.problem or "runs are not kept (CRAG_HISTORY)"
            draw_share(view.taken, view.trace, view.policy, _titles(), st.context.url, no_link, report.render)
        with st.popover("Open a record", icon=":material/file_open:", type="tertiary", disabled=busy):
            draw_import(_take, f"record_{st.session_state.setdefault('records', 0)}")


def draw_share_of(kept: Trace) -> None:
    """For the History page: a kept run as it was taken; the link leads to the Ask page."""
    url = (st.context.url or "").partition("?")[0].rstrip("/").removesuffix("/history")
    draw_share(kept, kept, kept.settings.policy, _titles(), url or None, "", report.render)


def _take(found: Trace) -> None:
    """Show an imported run; the next redraw has an empty uploader."""
    st.session_state["records"] += 1
    with suppress(CragError):  # where nothing is kept it can be looked at all the same
        found = under_way.keep_import(found)
    shown.open_later(found)
    st.rerun()


def _find(run_id: str) -> Trace | None:
    demo = demo_of(run_id)
    return demo.trace if demo else state.workbench().history.load(run_id)


def _open(found: Trace, asked: SharedView) -> None:
    edits, lost = edits_of(asked, found)
    if lost:
        state.report(lost)
    shown.remember(found)
    state.show(found)
    state.use_settings_of(found, but={name: value for name, value in vars(asked).items() if value is not None})
    if edits:
        st.session_state["edits"] = measured(found, edits, state.workbench().meter)
    st.session_state["ask_question"] = found.question


def _titles() -> Titles:
    policies = {name: policy.title for name, policy in state.policies().items()}
    return Titles(policies, {name: known_card(name).title for name in EVALUATORS})
