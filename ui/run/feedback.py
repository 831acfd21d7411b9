"""Feedback on chunks, route and answer: two buttons each, pressed again to take it back; kept in the history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from crag_core.base.errors import CragError
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import Passage
from crag_core.trace.feedback import About, Label, Mark, label_of
from ui.run.verdict import COLOURS, ICONS
from ui.session import access, app_state, current_run
from ui.session.current_run import View
from ui.session.keys import forget, remembered

_FACES = {
    Mark.RELEVANT: ("Relevant", "thumb_up"),
    Mark.NOT_RELEVANT: ("Not relevant", "thumb_down"),
    Mark.RIGHT: ("Right", "thumb_up"),
    Mark.WRONG: ("Wrong", "thumb_down"),
}
_KEPT = "Kept as a label for tuning; it changes nothing in this run."
_TAKE_BACK = "This is what you said. Press again to take it back."


def draw_feedback(view: View) -> None:
    """On route and answer, where labels can be kept."""
    if _can_label():
        with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="run_feedback"):
            _draw_labels(view, _labels(view.taken.id))


def passage_feedback(view: View) -> Callable[[Passage], None] | None:
    """What draws the buttons of a card; None where labels cannot be kept."""
    if not _can_label():
        return None
    said = _labels(view.taken.id)

    def draw(passage: Passage) -> None:
        label = said.get((About.PASSAGE, passage.id))
        for mark in (Mark.RELEVANT, Mark.NOT_RELEVANT):
            _draw_mark(mark, label.mark if label else None, About.PASSAGE, passage.id)

    return draw


def _draw_labels(view: View, said: dict[tuple[About, str], Label]) -> None:
    action, answer = view.routed.decision.verdict, view.routed.answer
    if action is not None:
        held, expected = _said_of(said.get((About.ROUTE, "")), action)
        with _row("Was this route right?"):
            for mark in (Mark.RIGHT, Mark.WRONG):
                _draw_mark(mark, held, About.ROUTE)
        if held is Mark.WRONG:
            with _row("It should have been"):
                for other in Action:
                    if other is not action:
                        then = None if other is expected else other
                        name, key = f":{COLOURS[other]}[{other}]", f"label_route_{other}"
                        args = (About.ROUTE, "", Mark.WRONG, then)
                        _draw_button(name, ICONS[other], key, other is expected, args)
    if answer is not None and answer.state is AnswerState.COMPLETE and not view.is_quoted_anew:
        label = said.get((About.ANSWER, ""))
        with _row("Was this answer right?" if action is None else "And the answer?"):
            for mark in (Mark.RIGHT, Mark.WRONG):
                _draw_mark(mark, label.mark if label else None, About.ANSWER)


def _said_of(route: Label | None, action: Action) -> tuple[Mark | None, Action | None]:
    """What a label, which may be of another action than the present one, says of this one."""
    if route is None or (route.wanted is None and route.action is not action):
        return None, None
    if route.wanted is action:
        return Mark.RIGHT, None
    return Mark.WRONG, route.wanted


def _row(words: str) -> DeltaGenerator:
    """Wraps as one piece."""
    row = st.container(horizontal=True, vertical_alignment="center", gap="small", width="content")
    row.markdown(f":small[:gray[{words}]]", width="content")
    return row


def _draw_mark(mark: Mark, current: Mark | None, about: About, target: str = "") -> None:
    words, icon = _FACES[mark]
    is_set = mark is current
    args = (about, target, mark, None, not is_set)
    _draw_button(words, icon, f"label_{target or about.value}_{mark}", is_set, args)


def _draw_button(words: str, icon: str, key: str, is_set: bool, args: tuple[object, ...]) -> None:
    """A sign of its own tells the one that holds, in its name too: neither colour nor weight alone would."""
    label, hint = (f"**{words} ✓**", _TAKE_BACK) if is_set else (words, _KEPT)
    st.button(label, key, hint, _label, args, icon=f":material/{icon}:", type="tertiary")


# --- what is kept ---------------------------------------------------------------------------------------------------


def _can_label() -> bool:
    history = app_state.workbench().history
    return history.is_on and not history.problem


def _labels(run_id: str) -> dict[tuple[About, str], Label]:
    """By what they are about; none where the history does not answer. Read once a run."""

    def read() -> dict[tuple[About, str], Label]:
        try:
            return {(label.about, label.target): label for label in app_state.workbench().history.labels(run_id)}
        except CragError:
            return {}

    return remembered("labels", run_id, read)


def _label(about: About, target: str, mark: Mark, expected: Action | None, is_kept: bool = True) -> None:
    """For a callback: keep what is said of the run on the page, or take it back.

    `expected`: the action that a wrong route should have been, if that was said.
    """
    view = current_run.view()
    if view is None:
        return
    trace, policy, now = view.trace, view.policy, datetime.now(UTC).isoformat(timespec="seconds")
    action = view.routed.decision.action if about is About.ROUTE else None
    label = label_of(trace, policy, mark, now, target=target, action=action, expected=expected)
    if label is None:
        return
    history = app_state.workbench().history
    forget("labels")
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
