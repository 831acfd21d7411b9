"""Labelling the questions that tell most: where they come from, and one at a time with its best chunk."""

from __future__ import annotations

import re
from collections.abc import Callable

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import shortened
from crag_core.experiments.labelled.questions import LABELS, Expected, UnlabelledQuestion, word
from ui.run.verdict import ICONS
from ui.session import access, labelling_state
from ui.session.fragments import fragment, ticking
from ui.session.labelling_state import Round
from ui.shell.text import paragraphs, plain
from ui.tune.grading_progress import draw_ended, draw_job
from ui.tune.question_sets import draft

Find = Callable[[], tuple[UnlabelledQuestion, ...]]
_LABELS = (Expected.CORRECT, Expected.AMBIGUOUS, Expected.INCORRECT)
_LONGEST_CHUNK = 900
_DRAFTED = 60
_HEADING = re.compile(r"^#+ ", re.MULTILINE)


def draw_labelling(busy: bool) -> None:
    """The round that is under way; nothing without one, and for who may not label."""
    if not access.is_administrator():
        return
    if (ended := labelling_state.take_graded()) is not None:
        draw_ended(ended, title="Not all questions were graded")
    if labelling_state.grading() is not None:
        _draw_running()
    elif labelling_state.current() is not None:
        _draw_round()


def draw_start(busy: bool) -> None:
    """Where questions without a label come from."""
    if not access.is_administrator():
        return
    st.markdown(
        f"Picks the {labelling_state.ROUND} questions nearest to your thresholds. One click labels each. "
        f"The labels go into “{plain(labelling_state.target())}”."
    )
    with st.container(horizontal=True):
        _draw_source("From History", "history", labelling_state.from_history, busy)
        _draw_source("Drafted", "edit_note", _drafted, busy)
    st.caption("Or upload a file with only the column `question`.")
    if problem := st.session_state.pop("label_problem", ""):
        st.caption(f":orange[:material/warning: {plain(problem)}]")
    if calls := labelling_state.effort(_DRAFTED):
        st.caption(calls)


def _draw_source(title: str, icon: str, find: Find, busy: bool) -> None:
    st.button(title, icon=f":material/{icon}:", on_click=_begin, args=(find,), disabled=busy, key=f"label_from_{icon}")


def _begin(find: Find) -> None:
    """For a callback."""
    try:
        found = find()
    except CragError as error:
        st.session_state["label_problem"] = str(error)
        return
    if not found:
        st.session_state["label_problem"] = "No question was found there."
        return
    labelling_state.begin(found)


def _drafted() -> tuple[UnlabelledQuestion, ...]:
    """Of the documents as they are: the others are labelled by how they were made."""
    return tuple(UnlabelledQuestion(one.question) for one in draft(_DRAFTED, ask_model=False) if not one.without)


@ticking()
def _draw_running() -> None:
    draw_job(labelling_state.grading(), "Grading", "graded", "label")


@fragment()
def _draw_round() -> None:
    found = labelling_state.current()
    if found is None:
        st.rerun()
        return
    with st.container(border=True, key="label_round"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            done = min(found.done + 1, len(found.asked))
            title = f"Label {done} of {len(found.asked)}" if found.next else f"{len(found.asked)} labelled"
            st.markdown(f"**{title}**", width="content")
            st.button(
                "Finish" if found.next is None else "Stop here", on_click=labelling_state.end, args=(found.name,),
                icon=":material/check:", type="primary" if found.next is None else "tertiary", key="label_end",
            )  # fmt: skip
        st.progress(found.done / len(found.asked))
        if found.next is None:
            st.markdown(f"All are in “{plain(found.name)}”.")
        else:
            _draw_question(found, found.next)
        if found.last is not None:
            undone = found.last
            st.button(
                f"Undo “{plain(shortened(undone.question, 40))}”", on_click=labelling_state.label,
                args=(found.name, undone, None), icon=":material/undo:", type="tertiary", key="label_undo",
            )  # fmt: skip


def _draw_question(found: Round, asked: UnlabelledQuestion) -> None:
    st.subheader(plain(asked.question), anchor=False)
    best = labelling_state.best_chunk(asked)
    if best is None:
        st.caption("No chunk was found.")
    else:
        score = "not graded" if best.score is None else f"{best.score:.2f}"
        st.caption(f"Best chunk: {plain(best.passage.source)}, score {score}")
        with st.container(border=True, key="label_chunk", height=220):
            text = _HEADING.sub("", shortened(best.passage.text, _LONGEST_CHUNK))
            st.markdown(paragraphs(text))
    st.markdown("Do your documents answer it?")
    with st.container(horizontal=True, vertical_alignment="center"):
        for number, expected in enumerate(_LABELS, start=1):
            st.button(
                word(expected).capitalize(), on_click=labelling_state.label, args=(found.name, asked, expected),
                icon=f":material/{ICONS[expected.actions[0]]}:", shortcut=str(number), help=LABELS[expected],
                key=f"label_{expected}",
            )  # fmt: skip
        st.button("Later", on_click=labelling_state.skip, args=(found, asked), type="tertiary", key="label_skip")
