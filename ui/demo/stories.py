"""The story of a run by its id: of a recorded demo, a run of this session, or one that is kept."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from crag_core.base.text.display import moment
from crag_core.evaluators.policies import suit
from crag_core.trace.trace import Trace
from crag_core.view.run_view import view_run
from crag_core.view.story.steps import Story
from crag_core.view.story.story import tell
from ui.run import share
from ui.session import app_state, current_run
from ui.session.demos import ABOUT, WRITTEN, Demo, demo_of

_LONGEST_NAME = 80  # characters


@dataclass(frozen=True)
class Staged:
    """`has_link`: whoever has its address finds it here. `is_demo`: it came with the application."""

    story: Story
    trace: Trace
    has_link: bool
    is_demo: bool


def find(run_id: str) -> Staged | None:
    """None for a run that is not here; raises `CragError` where the history cannot be read."""
    if demo := demo_of(run_id):
        return Staged(story_of_demo(demo), demo.trace, has_link=True, is_demo=True)
    shown = current_run.trace()
    own = shown if shown and shown.id == run_id else current_run.find_earlier(run_id)
    history = app_state.workbench().history
    if own:  # the record as it is kept may be an earlier one
        return Staged(story_of(own), own, history.is_on and not history.problem, is_demo=False)
    kept = share.find(run_id) if history.is_on and share.RUN_ID.fullmatch(run_id) else None
    return Staged(story_of(kept), kept, has_link=True, is_demo=False) if kept else None


def story_of_demo(demo: Demo) -> Story:
    trace = demo.trace
    other = app_state.policies().get(demo.other)
    return tell(
        view_run(trace),
        title=demo.title,
        notes=demo.notes,
        about=ABOUT,
        move=demo.move,
        other=suit(other, trace.settings.evaluator.name) if other else None,
        web_note=WRITTEN,
        tells_ending=True,
    )


def story_of(trace: Trace) -> Story:
    title = str(st.session_state.get("story_name") or "")[:_LONGEST_NAME]
    return tell(view_run(trace), title=title, about=f"Asked on {moment(trace.created)}.")
