"""What somebody thinks of a passage, the route and the answer: two buttons each, pressed again to take it back."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from crag_core.base.types import Action
from crag_core.trace.feedback import About, Label, Mark
from ui.run.verdict import COLOURS, ICONS

OnRunLabel = Callable[[About, Mark | None, Action | None], None]

_FACES = {
    Mark.RELEVANT: ("Relevant", "thumb_up"),
    Mark.NOT_RELEVANT: ("Not relevant", "thumb_down"),
    Mark.RIGHT: ("Right", "thumb_up"),
    Mark.WRONG: ("Wrong", "thumb_down"),
}
_KEPT = "Kept as a label for tuning; it changes nothing in this run."
_TAKE_BACK = "This is what you said. Press again to take it back."


def draw_passage_feedback(passage_id: str, current: Mark | None, on_label: Callable[[str, Mark | None], None]) -> None:
    """For a row of buttons. `on_label` gets the passage's id and what holds now, None for nothing any more."""
    for mark in (Mark.RELEVANT, Mark.NOT_RELEVANT):
        then = None if mark is current else mark
        _draw_mark(mark, current, f"label_{passage_id}", on_label, (passage_id, then))


def draw_run_feedback(
    route: Label | None, answer: Mark | None, action: Action, on_label: OnRunLabel, has_answer: bool = True
) -> None:
    """One row: was `action`, the one on the screen, right, and the answer?

    `on_label` gets what it is about, what holds now (None for nothing any more), and the action that a wrong route
    should have been, if that was said.
    """
    said, expected = _said_of(route, action)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="run_feedback"):
        with _row():
            _draw_words("Was this route right?")
            for mark in (Mark.RIGHT, Mark.WRONG):
                _draw_mark(mark, said, "label_route", on_label, (About.ROUTE, None if mark is said else mark, None))
        if said is Mark.WRONG:
            with _row():
                _draw_expected(action, expected, on_label)
        if has_answer:
            with _row():
                _draw_words("And the answer?")
                for mark in (Mark.RIGHT, Mark.WRONG):
                    then = None if mark is answer else mark
                    _draw_mark(mark, answer, "label_answer", on_label, (About.ANSWER, then, None))


def _said_of(route: Label | None, action: Action) -> tuple[Mark | None, Action | None]:
    """What a label, which may be of another action than the present one, says of this one."""
    if route is None or (route.wanted is None and route.action is not action):
        return None, None
    if route.wanted is action:
        return Mark.RIGHT, None
    return Mark.WRONG, route.wanted


def _draw_expected(action: Action, expected: Action | None, on_label: OnRunLabel) -> None:
    _draw_words("It should have been")
    for other in Action:
        if other is not action:
            then = None if other is expected else other
            _draw_button(
                f":{COLOURS[other]}[{other}]",
                ICONS[other],
                f"label_route_{other}",
                other is expected,
                on_label,
                (About.ROUTE, Mark.WRONG, then),
            )


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
    st.button(
        f"**{words} ✓**" if is_set else words,
        key,
        _TAKE_BACK if is_set else _KEPT,
        on_label,
        message,
        icon=f":material/{icon}:",
        type="tertiary",
    )
