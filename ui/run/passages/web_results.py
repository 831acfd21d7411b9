"""The web step: the query and who wrote it, what came of it, and each snippet with its link."""

from __future__ import annotations

import streamlit as st

from crag_core.base.types import WebOutcome, WebSearch
from crag_core.trace.reroute import Reroute
from crag_core.view.chunk_cards import snippet_cards
from crag_core.view.path.web_stages import describe_web
from crag_core.view.run_view import RunView
from ui.run.passages.passages import CardActions, draw_card
from ui.text import plain

_ICONS = {WebOutcome.USED: "public", WebOutcome.OFF: "public_off", WebOutcome.REFUSED: "block"}


def draw_web(view: RunView, was: Reroute | None = None, actions: CardActions | None = None) -> None:
    """Arguments as those of `draw_passages`."""
    web = view.trace.web
    if web is None or web.outcome in (WebOutcome.PENDING, WebOutcome.APPROVED):
        return
    st.subheader("From the web", anchor="web")
    asked = f" Query: **{plain(web.query)}** ({plain(web.query_by)})." if web.query else ""
    message = plain(describe_web(view.trace, view.routed))
    st.markdown(f":material/{_ICONS.get(web.outcome, 'warning')}: {message}{asked}")
    _draw_attempts(web)
    with st.container(gap="xxsmall", key="web_results"):
        for card in snippet_cards(view, was):
            draw_card(card, view.trace.id, actions)


def _draw_attempts(web: WebSearch) -> None:
    """Who was asked before, where there was more than one."""
    if len(web.attempts) > 1:
        message = (f"{plain(one.provider)}: {one.outcome.value}" for one in web.attempts)
        st.caption(f"Asked in this order: {', '.join(message)}.")
