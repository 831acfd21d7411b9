"""The line of a passage: rank, source, scores and what becomes of it; it opens and folds the card below."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

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


@dataclass(frozen=True)
class Head:
    """What the line says. `anchor` is where links lead; `chips` are (kind, words), `scores` (name, 0..1)."""

    anchor: str
    rank: int
    title: str
    scores: tuple[tuple[str, float], ...] = ()
    ungraded: tuple[str, ...] = ()
    use: str = ""
    used: bool = False
    chips: tuple[tuple[str, str], ...] = ()


def draw_head(head: Head, key: str, is_open: bool) -> bool:
    """Whether the card is open now; `is_open` is how it starts. The browser keeps it under `key`, whatever moves."""
    drawn = _component(
        data={**head.__dict__, "open": is_open}, key=key, default={"open": is_open}, on_open_change=lambda: None
    )
    return bool(drawn.open)
