"""Made-up scores: a few examples, and fields to change them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Scores
from crag_core.decision.signals import CLASS, CLASSES, SUFFICIENCY

Row = dict[str, Any]


def _row(score: float, answering: float, topical: float, cosine: float, found_by: str = "dense") -> Row:
    return {"score": score, "answering": answering, "topical": topical, "cosine": cosine, "found by": found_by}


EXAMPLES: dict[str, tuple[Row, ...]] = {
    "Mixed": (
        _row(0.90, 0.85, 0.95, 0.82),
        _row(0.50, 0.15, 0.85, 0.61),
        _row(0.25, 0.05, 0.45, 0.43, "keyword"),
    ),
    "Answered": (
        _row(0.95, 0.94, 0.97, 0.84),
        _row(0.88, 0.86, 0.92, 0.79),
        _row(0.75, 0.70, 0.88, 0.70, "keyword"),
    ),
    "On topic": (
        _row(0.55, 0.25, 0.85, 0.66),
        _row(0.45, 0.15, 0.80, 0.58),
        _row(0.40, 0.10, 0.75, 0.51, "keyword"),
    ),
    "Off topic": (
        _row(0.12, 0.02, 0.30, 0.31),
        _row(0.08, 0.02, 0.22, 0.24),
        _row(0.05, 0.01, 0.15, 0.18, "keyword"),
    ),
}
"""Chunks in rank order, by name."""
_SIGNALS = {
    "keyword_overlap": 0.8,
    "coherence": 0.6,
    "length_adequacy": 1.0,
    "diversity": 0.7,
    "keyword_coverage": 0.6,
    "agreement": 0.5,
}
_CLASS_OF = {"Answered": "B", "Off topic": "A"}
"""Of the question of an example; of the others it is C."""
_ENOUGH = ("Mixed", "Answered")
"""Examples of which a model would say that all chunks together are enough."""
_MOST = 20  # chunks


def draw_choice() -> tuple[str, bool]:
    """(the name of the example, whether it is to be changed)"""
    name = st.pills("Example", list(EXAMPLES), default="Mixed", required=True, key="policies_example")
    return name, st.toggle("Edit scores", key="policies_edit")


def made_up(name: str, is_edited: bool) -> tuple[tuple[Passage, ...], tuple[Grade, ...], Scores]:
    """Chunks, grades and signals of an example, with fields to change them where that is wanted."""
    rows, signals = _draw_editor(name) if is_edited else (EXAMPLES[name], signals_of(name))
    return *read_rows(list(rows)[:_MOST]), signals


def signals_of(name: str) -> Scores:
    together, rounds = float(name in _ENOUGH), CLASSES[_CLASS_OF.get(name, "C")]
    return (*_SIGNALS.items(), (SUFFICIENCY, together), (CLASS, rounds))


def _draw_editor(name: str) -> tuple[tuple[Row, ...], Scores]:
    share: dict[str, Any] = {"min_value": 0.0, "max_value": 1.0, "step": 0.01, "format": "%.2f"}
    number = st.column_config.NumberColumn
    with st.container(horizontal=True, gap="medium"):
        with st.container(width=560):
            rows: list[Row] = st.data_editor(
                list(EXAMPLES[name]), num_rows="dynamic", key=f"policies_rows_{name}", hide_index=True,
                column_config={
                    "score": number("Score", help="Empty: not graded.", **share),
                    "answering": number("Answer", help="Does the chunk hold the answer?", **share),
                    "topical": number("Subject", help="Is the chunk on the subject?", **share),
                    "cosine": number("Cosine", min_value=-1.0, max_value=1.0, step=0.01, format="%.2f"),
                    "found by": st.column_config.SelectboxColumn("Found by", options=["dense", "keyword", "read_file"]),
                },
            )  # fmt: skip
            st.caption(f"Chunks in rank order, {_MOST} at most. Only Two signals reads answer and subject.")
        with st.container(width=380, gap="small"):
            st.markdown("**Signals of the whole set**", help="Read by Heuristic and Signals.")
            signals = tuple(
                (of, st.slider(of.replace("_", " ").capitalize(), 0.0, 1.0, value, 0.01, key=f"policies_{of}"))
                for of, value in _SIGNALS.items()
            )
            enough = st.toggle(
                "Enough together", name in _ENOUGH, key=f"policies_enough_{name}",
                help="What a language model says of all chunks. Read by Sufficient context.",
            )  # fmt: skip
            letter = st.segmented_control(
                "Question class", list(CLASSES), default=_CLASS_OF.get(name, "C"), required=True,
                key=f"policies_class_{name}",
                help="A: no retrieval, B: one, C: several rounds. Read by Adaptive-RAG.",
            )  # fmt: skip
            signals += ((SUFFICIENCY, float(enough)), (CLASS, CLASSES[letter]))
    return tuple(rows), signals


def read_rows(rows: list[Row]) -> tuple[tuple[Passage, ...], tuple[Grade, ...]]:
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
