"""Earlier results of a labelled set: put into the table, or deleted."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from crag_core.base.text.display import counted
from crag_core.experiments.comparison.earlier_results import Earlier
from crag_core.experiments.labelled.questions import LabelledQuestion
from ui.compare import set_results
from ui.compare.set_results import Compared
from ui.session import access
from ui.session.access import Right
from ui.text import plain

_SEEN = 6
"""Rows that are seen at once; the others by scrolling."""


def draw_earlier_results(found: Sequence[Earlier], questions: Sequence[LabelledQuestion]) -> None:
    """The list, with a tick for those that are in the table."""
    st.subheader("Earlier results", anchor=False)
    if not found:
        st.caption(
            "None yet. When documents, policy, thresholds, models or the program change, the results until then can be "
            "put beside the new ones here."
        )
        return
    st.caption(
        "Results of the same questions before something was changed. Ticked ones are added to the table, the chart and "
        f"the files, at most {set_results.MOST}. Nothing is run again."
    )
    beside = set_results.beside(found)
    is_full = len(beside) >= set_results.MOST
    with st.container(border=True, gap="small", height=72 * _SEEN if len(found) > _SEEN else "content"):
        for one in found:
            _draw_one(one, questions, one in beside, is_full and one not in beside)


def _draw_one(one: Earlier, questions: Sequence[LabelledQuestion], is_beside: bool, is_off: bool) -> None:
    key = f"versus_beside_{one.kept.fingerprint}"
    left, right = st.columns([5, 1], vertical_alignment="top", gap="small")
    with left.container(gap="xxsmall"):
        st.checkbox(f"**{plain(one.name)}**", is_beside, key=key, on_change=_put, args=(one, key), disabled=is_off)
        st.caption(f"{len(one.asked)} of {counted(len(questions), 'question')}. {_unlike(one)}")
    if not access.may(Right.TUNE):
        return
    with right.container(horizontal_alignment="right"), st.popover("Delete", type="tertiary"):
        st.markdown(
            f"Delete **{plain(one.name)}**, {counted(len(one.asked), 'question')}? Other results, the set and the "
            "documents stay. This cannot be undone."
        )
        st.button(
            "Delete it", on_click=set_results.delete, args=(one, questions), icon=":material/delete:",
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
        message.append(f"{named} had other documents than there are now; a difference may come from these.")
    message.append("Their times were measured when they were run.")
    st.caption("  \n".join(message))


def _unlike(one: Earlier) -> str:
    """The settings that differed, as Markdown."""
    return plain(f"Unlike {set_results.letter_of(one.like)} · {one.like}: {', '.join(one.differs)}.")


def _put(one: Earlier, key: str) -> None:
    set_results.put(one, st.session_state[key])
