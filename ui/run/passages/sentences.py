"""A passage with its sentences in place: kept ones on green, the others struck through, each score at the cut-off."""

from __future__ import annotations

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.view.sentences import SentenceList
from ui import PARTS

_component = st.components.v2.component(
    "sentences",
    html=(
        '<div class="box" role="group"><div class="top"><span class="note"></span>'
        '<span class="legend"><span></span></span></div><ol></ol></div>'
    ),
    css=(PARTS / "sentences.css").read_text("utf-8"),
    js=(PARTS / "sentences.js").read_text("utf-8"),
)


def draw_sentences(sentences: SentenceList, key: str, label: str) -> None:
    """All that a tooltip could say is on the page too, in words or signs that never change the height of a row."""
    _component(data=to_plain(sentences) | {"label": label}, key=key)
