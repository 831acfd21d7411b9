"""Labelling the questions nearest to the thresholds: where they come from, and a table with the best chunk of each."""

from __future__ import annotations

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.serialization import fingerprint
from crag_core.evaluators.policies import known_card
from crag_core.experiments.labelled.questions import Expected, word
from ui.session import access, app_state
from ui.session.fragments import fragment
from ui.session.keys import hand, kept, take
from ui.shell.text import plain
from ui.tune import labelling_state
from ui.tune.grading_progress import draw_ended, draw_job
from ui.tune.labelling_state import Labelling

_LABELS = (Expected.CORRECT, Expected.AMBIGUOUS, Expected.INCORRECT)


def draw_labelling() -> None:
    """The round that is under way; nothing without one, and for who may not label."""
    if not access.is_administrator():
        return
    if (ended := labelling_state.take_graded()) is not None:
        draw_ended(ended, title="Not all questions were graded")
    if labelling_state.GRADING.job is not None:
        draw_job(labelling_state.GRADING, "Grading", "graded")
    elif kept(Labelling).asked:
        _draw_table()


def draw_start(busy: bool) -> None:
    if not access.is_administrator():
        return
    st.markdown(
        f"Picks the {labelling_state.ROUND} questions nearest to your thresholds. "
        f"The labels go into “{plain(labelling_state.target())}”."
    )
    st.button("From History", icon=":material/history:", on_click=_begin, disabled=busy, key="label_from_history")
    st.caption("Or upload a file with only the column `question`.")
    if problem := take("label_problem"):
        st.caption(f":orange[:material/warning: {plain(problem)}]")
    card = known_card(app_state.evaluator())
    if card.calls_model:
        most = labelling_state.MOST_GRADED * -(-app_state.settings().top_k // card.batch)
        st.caption(f"{labelling_state.MOST_GRADED} questions at most are graded: up to {most:,} LLM calls.")


def _begin() -> None:
    try:
        found = labelling_state.from_history()
    except CragError as error:
        hand("label_problem", str(error))
        return
    if found:
        labelling_state.begin(found)
    else:
        hand("label_problem", "No question was found there.")


@fragment()
def _draw_table() -> None:
    """Labels are kept as they are chosen."""
    found = kept(Labelling)
    if not found.asked:
        st.rerun()
        return
    key = f"label_table_{fingerprint((found.name, [one.key for one in found.asked]))}"
    rows = labelling_state.rows(key)
    with st.container(border=True, key="label_round"):
        st.markdown(f"**Do your documents answer these?** Each label goes into “{plain(found.name)}” at once.")
        st.data_editor(
            rows, key=key, num_rows="fixed", hide_index=True, height=min(35 * (len(rows) + 1) + 3, 460),
            disabled=["question", "best chunk", "score", "document"], on_change=_take_edits, args=(key,),
            column_config={
                "label": st.column_config.SelectboxColumn(options=list(map(word, _LABELS)), width="small"),
                "question": st.column_config.TextColumn(width="medium"),
                "best chunk": st.column_config.TextColumn(width="large", help="The chunk with the highest score."),
                "score": st.column_config.NumberColumn(format="%.2f"),
            },
        )  # fmt: skip
        st.button("Finish", on_click=labelling_state.end, icon=":material/check:", key="label_end")


def _take_edits(key: str) -> None:
    """For a callback: all cells that were changed since the table was drawn first."""
    edited = st.session_state[key]["edited_rows"]
    labels = {word(one): one for one in _LABELS}
    chosen = {int(row): labels.get(cells["label"]) for row, cells in edited.items() if "label" in cells}
    labelling_state.label(chosen)
