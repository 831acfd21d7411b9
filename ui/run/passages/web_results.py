"""The web step: the query and who wrote it, what came of it, and each snippet with its link."""

from __future__ import annotations

import streamlit as st

from crag_core.base.types import CorrectionKind, WebOutcome, WebSearch
from crag_core.trace.reroute import Reroute
from crag_core.view.chunk_cards import snippet_cards
from crag_core.view.run_view import RunView
from ui.run.passages.passages import CardActions, draw_card
from ui.text import plain

_ICONS = {WebOutcome.USED: "public", WebOutcome.OFF: "public_off", WebOutcome.REFUSED: "block"}


def draw_web(view: RunView, was: Reroute | None = None, actions: CardActions | None = None) -> None:
    """Arguments as those of `draw_passages`."""
    web = view.trace.web
    wanted = view.routed.decision.wants(CorrectionKind.WEB_SEARCH)
    if web is None or web.outcome in (WebOutcome.PENDING, WebOutcome.APPROVED):
        return
    st.subheader("From the web", anchor="web")
    st.markdown(f":material/{_ICONS.get(web.outcome, 'warning')}: {_describe(web)}")
    _draw_attempts(web)
    if web.passages and not wanted:
        st.caption("Recorded, but not used under the present thresholds.")
    with st.container(gap="xxsmall", key="web_results"):
        for card in snippet_cards(view, was):
            draw_card(card, view.trace.id, actions)


def _describe(web: WebSearch) -> str:
    asked = f" Query: **{plain(web.query)}** ({plain(web.query_by)})." if web.query else ""
    if web.outcome is WebOutcome.USED:
        kept = " from memory" if web.from_cache else ""
        return f"{len(web.passages)} results from {plain(web.provider)}{kept}.{asked}"
    if web.outcome is WebOutcome.OFF:
        return "This route asks for a web search, and web search is off."
    if web.outcome is WebOutcome.REFUSED:
        return f"You refused this search; nothing left this machine.{asked}"
    return f"{plain(web.message)}{asked}"


def _draw_attempts(web: WebSearch) -> None:
    """Who was asked before, where there was more than one."""
    if len(web.attempts) > 1:
        message = (f"{plain(one.provider)}: {one.outcome.value}" for one in web.attempts)
        st.caption(f"Asked in this order: {', '.join(message)}.")
