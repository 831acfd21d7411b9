"""Feedback on chunks, route and answer: two buttons each, pressed again to take it back; kept in the history.

And one's own set of labelled questions, which the question on the page goes into by one click.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from crag_core.base.errors import CragError
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import Passage
from crag_core.experiments.labelled.questions import LABELS, Expected, word
from crag_core.experiments.labelled.read import LONGEST_QUESTION
from crag_core.trace.feedback import About, Label, Mark, of_answer, of_passage, of_route
from ui.run.verdict import COLOURS, ICONS
from ui.session import access, app_state, current_run, tune_state
from ui.session.current_run import View
from ui.shell.text import plain

OnPassageLabel = Callable[[str, Mark | None], None]
OnRunLabel = Callable[[About, Mark | None, Action | None], None]

_FACES = {
    Mark.RELEVANT: ("Relevant", "thumb_up"),
    Mark.NOT_RELEVANT: ("Not relevant", "thumb_down"),
    Mark.RIGHT: ("Right", "thumb_up"),
    Mark.WRONG: ("Wrong", "thumb_down"),
}
_KEPT = "Kept as a label for tuning; it changes nothing in this run."
_TAKE_BACK = "This is what you said. Press again to take it back."

# --- the buttons ----------------------------------------------------------------------------------------------------


def draw_passage_feedback(passage_id: str, current: Mark | None, on_label: OnPassageLabel) -> None:
    """For a row of buttons. `on_label` gets the passage's id and what holds now, None for nothing any more."""
    for mark in (Mark.RELEVANT, Mark.NOT_RELEVANT):
        then = None if mark is current else mark
        _draw_mark(mark, current, f"label_{passage_id}", on_label, (passage_id, then))


def draw_run_feedback(
    route: Label | None, answer: Mark | None, action: Action | None, on_label: OnRunLabel, has_answer: bool
) -> None:
    """One row: was `action`, the one on the screen, right (None: there is none), and the answer?

    `on_label` gets what it is about, what holds now (None for nothing any more), and the action that a wrong route
    should have been, if that was said.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="run_feedback"):
        if action is not None:
            _draw_route_feedback(route, action, on_label)
        if has_answer:
            with _row():
                _draw_words("Was this answer right?" if action is None else "And the answer?")
                for mark in (Mark.RIGHT, Mark.WRONG):
                    message = (About.ANSWER, None if mark is answer else mark, None)
                    _draw_mark(mark, answer, "label_answer", on_label, message)


def _draw_route_feedback(route: Label | None, action: Action, on_label: OnRunLabel) -> None:
    said, expected = _said_of(route, action)
    with _row():
        _draw_words("Was this route right?")
        for mark in (Mark.RIGHT, Mark.WRONG):
            _draw_mark(mark, said, "label_route", on_label, (About.ROUTE, None if mark is said else mark, None))
    if said is Mark.WRONG:
        with _row():
            _draw_words("It should have been")
            for other in Action:
                if other is not action:
                    then, name = None if other is expected else other, f":{COLOURS[other]}[{other}]"
                    key, of_route_now = f"label_route_{other}", (About.ROUTE, Mark.WRONG, then)
                    _draw_button(name, ICONS[other], key, other is expected, on_label, of_route_now)


def _said_of(route: Label | None, action: Action) -> tuple[Mark | None, Action | None]:
    """What a label, which may be of another action than the present one, says of this one."""
    if route is None or (route.wanted is None and route.action is not action):
        return None, None
    if route.wanted is action:
        return Mark.RIGHT, None
    return Mark.WRONG, route.wanted


def draw_own_label(name: str, current: Expected | None, on_label: Callable[[Expected | None], None]) -> None:
    """One row: a word for each label of the question, which goes into the set `name`; pressed again it comes out.

    `on_label` gets the label that holds now, None for none.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="own_set_row"), _row():
        _draw_words("Add to my set:" if current is None else f"In “{plain(name)}”, see Tune:")
        for expected in (Expected.CORRECT, Expected.AMBIGUOUS, Expected.INCORRECT):
            is_set, action = expected is current, expected.actions[0]
            st.button(
                f"**{word(expected).capitalize()} ✓**" if is_set else word(expected).capitalize(),
                f"own_label_{expected}", _TAKE_BACK if is_set else LABELS[expected], on_label,
                (None if is_set else expected,), icon=f":material/{ICONS[action]}:", type="tertiary",
            )  # fmt: skip


def _row() -> DeltaGenerator:
    """Wraps as one piece."""
    return st.container(horizontal=True, vertical_alignment="center", gap="small", width="content")


def _draw_words(words: str) -> None:
    st.markdown(f":small[:gray[{words}]]", width="content")


def _draw_mark(
    mark: Mark, current: Mark | None, key: str, on_label: Callable[..., None], message: tuple[object, ...]
) -> None:
    words, icon = _FACES[mark]
    _draw_button(words, icon, f"{key}_{mark}", mark is current, on_label, message)


def _draw_button(
    words: str, icon: str, key: str, is_set: bool, on_label: Callable[..., None], message: tuple[object, ...]
) -> None:
    """A sign of its own tells the one that holds, in its name too: neither colour nor weight alone would."""
    label, hint = (f"**{words} ✓**", _TAKE_BACK) if is_set else (words, _KEPT)
    st.button(label, key, hint, on_label, message, icon=f":material/{icon}:", type="tertiary")


# --- of the run on the page -----------------------------------------------------------------------------------------


def draw_feedback(view: View) -> None:
    """On route and answer, where labels can be kept, and the buttons that put the question into one's own set."""
    if _can_label():
        _draw_labels(view)
    if access.is_administrator() and len(view.taken.question) <= LONGEST_QUESTION:
        question, collection = view.taken.question, view.taken.settings.collection
        on_label = partial(tune_state.label_own, question, collection)
        draw_own_label(tune_state.own_name(), tune_state.own_label(question), on_label)


def _draw_labels(view: View) -> None:
    said, answer = _labels(view.taken.id), view.routed.answer
    draw_run_feedback(
        said.get((About.ROUTE, "")),
        label.mark if (label := said.get((About.ANSWER, ""))) else None,
        view.routed.decision.verdict,
        _label_run,
        has_answer=answer is not None and answer.state is AnswerState.COMPLETE and not view.is_quoted_anew,
    )


def passage_feedback(view: View) -> Callable[[Passage], None] | None:
    """What draws the buttons of a card; None where labels cannot be kept."""
    if not _can_label():
        return None
    said = _labels(view.taken.id)

    def draw(passage: Passage) -> None:
        label = said.get((About.PASSAGE, passage.id))
        draw_passage_feedback(passage.id, label.mark if label else None, _label_passage)

    return draw


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

    return app_state.remembered("labels", run_id, read)


def _label_passage(passage_id: str, mark: Mark | None) -> None:
    if view := current_run.view():
        now = mark or Mark.RELEVANT
        _keep(view, of_passage(view.trace, view.policy, passage_id, now, _now()), is_kept=mark is not None)


def _label_run(about: About, mark: Mark | None, expected: Action | None) -> None:
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
