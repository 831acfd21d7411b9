"""A table of scores to enter by hand on the Policies page."""

from __future__ import annotations

from typing import Any

import streamlit as st

from crag_core.base.types import ANSWERING, TOPICAL, Grade, Passage, Scores

_START = [
    {"score": 0.9, "answering": 0.85, "topical": 0.95, "cosine": 0.82, "found by": "dense"},
    {"score": 0.5, "answering": 0.15, "topical": 0.85, "cosine": 0.61, "found by": "dense"},
    {"score": 0.25, "answering": 0.05, "topical": 0.45, "cosine": 0.43, "found by": "keyword"},
]
_SIGNALS = {
    "keyword_overlap": 0.8,
    "coherence": 0.6,
    "length_adequacy": 1.0,
    "diversity": 0.7,
    "keyword_coverage": 0.6,
    "agreement": 0.5,
}
_MOST = 20  # passages


def draw_made_up() -> tuple[tuple[Passage, ...], tuple[Grade, ...], Scores]:
    """The table and the sliders of the whole set; returns their chunks, grades and signals."""
    share: dict[str, Any] = {"min_value": 0.0, "max_value": 1.0, "step": 0.01}
    number = st.column_config.NumberColumn
    whole = st.container(horizontal=True)
    with whole.container(width=640):
        rows: list[dict[str, Any]] = st.data_editor(
            _START, num_rows="dynamic", key="policies_rows",
            column_config={
                "score": number("Score", help="Empty: the evaluator's reply was unreadable.", **share),
                "answering": number("Answering", help="Does the chunk hold the answer?", **share),
                "topical": number("Topical", help="Is the chunk on the subject?", **share),
                "cosine": number("Cosine", min_value=-1.0, max_value=1.0, step=0.01),
                "found by": st.column_config.SelectboxColumn("Found by", options=["dense", "keyword", "read_file"]),
            },
        )  # fmt: skip
        st.caption(
            "Chunks in rank order; add and remove rows as you like, up to twenty. Only Two signals reads answering "
            "and topical, in place of the score; where one is empty, the score replaces it."
        )
    with whole, st.expander("Measures of the whole set", icon=":material/tune:"):
        signals = tuple(
            (name, st.slider(name.replace("_", " ").capitalize(), 0.0, 1.0, value, 0.01, key=f"policies_{name}"))
            for name, value in _SIGNALS.items()
        )
    return *read_rows(rows[:_MOST]), signals


def read_rows(rows: list[dict[str, Any]]) -> tuple[tuple[Passage, ...], tuple[Grade, ...]]:
    passages, grades = [], []
    for number, row in enumerate(rows, start=1):
        cosine, score = row.get("cosine"), row.get("score")
        scores: Scores = () if cosine is None else (("cosine", float(cosine)),)
        found_by = (str(row.get("found by") or "dense"),)
        passages.append(Passage(f"p{number}", "Made up.", f"Chunk {number}", found_by=found_by, scores=scores))
        cause = "" if score is not None else "left empty"
        parts = tuple((name, float(value)) for name in (ANSWERING, TOPICAL) if (value := row.get(name)) is not None)
        grades.append(Grade(f"p{number}", None if score is None else float(score), parts=parts, cause=cause))
    return tuple(passages), tuple(grades)
