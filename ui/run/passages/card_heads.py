"""The line of a passage: rank, source, scores and what becomes of it; it opens and folds the card below."""

from __future__ import annotations

import streamlit as st

from crag_core.view.chunk_cards import ChunkCard
from ui import PARTS

_component = st.components.v2.component(
    "passage_head",
    html=(
        '<div class="row"><h4><button type="button"><span class="rank"></span> <span class="title"></span> '
        '<span class="chips"></span> <span class="scores"></span> <span class="use"></span>'
        '<span class="arrow" aria-hidden="true"></span></button></h4></div>'
    ),
    css=(PARTS / "passage_head.css").read_text("utf-8"),
    js=(PARTS / "passage_head.js").read_text("utf-8"),
)


def draw_head(card: ChunkCard, key: str, is_open: bool) -> bool:
    """Whether the card is open now; `is_open` is how it starts. The browser keeps it under `key`, whatever moves."""
    data = {
        "anchor": card.label.anchor,
        "rank": card.label.rank,
        "title": str(card.label.name),
        "scores": card.compared,
        "ungraded": ["not graded"] if card.ungraded else [],
        "use": card.use,
        "used": bool(card.cited),
        "chips": card.chips,
        "open": is_open,
    }
    drawn = _component(data=data, key=key, default={"open": is_open}, on_open_change=lambda: None)
    return bool(drawn.open)
