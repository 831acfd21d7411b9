"""The map of all chunks, with the last question and its retrieved chunks."""

from __future__ import annotations

import streamlit as st

from crag_core.base.documents import PassageMap
from crag_core.base.errors import CragError
from crag_core.base.text.display import counted, shortened
from ui.documents.corpus_map_chart import Asked, map_figure
from ui.session import app_state
from ui.text import plain


def draw_map(collection: str) -> None:
    """Of one collection, or of all with ""."""
    found = app_state.workbench().maps.draw(collection)
    if found is None:
        st.caption("A map needs three chunks.")
        return
    asked = _asked(collection)
    st.plotly_chart(
        map_figure(found, asked), key="documents_map_chart", config={"scrollZoom": True},
        alt=_described(found, asked),
    )  # fmt: skip
    st.caption(_describe(found, asked))


def _asked(collection: str) -> Asked | None:
    trace = app_state.trace()
    if trace is None or not trace.passages:
        return None
    ids = [passage.id for passage in trace.passages]
    try:
        points = app_state.workbench().maps.place(trace.question, ids, collection)
    except CragError:  # the sidebar tells what is wrong with the embedding model
        return None
    grades = {one: grade.score if (grade := trace.grade_of(one)) else None for one in ids}
    return Asked(points[0], points[1:], grades) if points else None


def _describe(found: PassageMap, asked: Asked | None) -> str:
    shown = f"{len(found.points):,} of " if len(found.points) < found.passages else ""
    message = (
        f"{shown}{found.passages:,} chunks in the two directions in which they differ most, which hold "
        f"{found.share:.0%} of the differences: what lies apart is apart, what lies together may still differ."
    )
    if asked is None:
        return f"{message} Ask a question, and it is shown here with its chunks."
    question = plain(shortened(asked.question.text, 120))
    return f"{message} The star is “{question}”, the numbers its chunks by rank, coloured by grade from red to green."


def _described(found: PassageMap, asked: Asked | None) -> str:
    shown = f"Map of {counted(len(found.points), 'chunk')}"
    return f"{shown}, the last question and {counted(len(asked.passages), 'chunk')} retrieved" if asked else shown
