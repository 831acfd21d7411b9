"""A recorded run on the page, in two fragments that a moved threshold redraws."""

from __future__ import annotations

import streamlit as st

from crag_core.app.workbench import known_card
from crag_core.base.types import CorrectionKind
from crag_core.evaluators import EVALUATORS
from crag_core.pipeline.pipeline import is_waiting
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.view.run_view import view_run
from ui.run.answer import draw_answer
from ui.run.feedback import draw_feedback, passage_feedback
from ui.run.opinions import draw_opinions
from ui.run.passages.page_view import open_place
from ui.run.passages.passages import CardActions, draw_passages, draw_web
from ui.run.passages.sentence_table import draw_strips
from ui.run.path import draw_path
from ui.run.record import draw_record, draw_rounds
from ui.run.score_line import draw_scores
from ui.run.verdict import draw_verdict
from ui.run.what_if.run_actions import ask_opinion, draw_approval, draw_failure, generate
from ui.run.what_if.run_offer import offer
from ui.run.what_if.what_if import draw_two_answers, draw_what_if
from ui.session import app_state, current_run
from ui.session.current_run import View


def draw_run(view: View) -> None:
    draw_failure(view.taken)
    if view.taken.passages is None:
        return
    for key, draw in ((current_run.STORY, _draw_story), (current_run.EVIDENCE, _draw_evidence)):
        current_run.mark_drawn(key)
        draw()


@st.fragment(key=current_run.STORY)
def _draw_story() -> None:
    """From the verdict to the answer on one screen, and then the scores."""
    view = current_run.view()
    if view is None:
        return
    draw_verdict(view)
    draw_path(view)
    draw_rounds(view)
    st.html('<span id="answers"></span>')
    _draw_answers(view)
    st.subheader("Scores against thresholds", anchor="scores")
    draw_scores(view, current_run.move)


def _asks_for_approval(view: View) -> bool:
    return is_waiting(view.taken) and view.routed.decision.wants(CorrectionKind.WEB_SEARCH)


def _draw_answers(view: View) -> None:
    first = current_run.first()
    if _asks_for_approval(view):
        draw_approval(view.taken, view.routed)
        return
    if first is not None and first.id != view.taken.id:
        draw_two_answers(view_run(first), view)
        st.button(
            "Put the first answer away", icon=":material/close:", type="tertiary", on_click=current_run.leave_first
        )
    else:
        draw_answer(view)
    draw_feedback(view)


@st.fragment(key=current_run.EVIDENCE)
def _draw_evidence() -> None:
    """What if, every passage, the web, other evaluators, and the record."""
    view = current_run.view()
    if view is None:
        return
    trace, routed = view.trace, view.routed
    if not _asks_for_approval(view) and not view.taken.failure:
        offered = offer(trace, routed, app_state.choice(), app_state.settings_now(), app_state.settings().support)
        draw_what_if(view, offered, current_run.undo, generate)
    st.subheader("Chunks from your documents", anchor="passages")
    if not trace.passages:
        st.markdown("Nothing was retrieved. Are there documents yet? The Documents page takes them.")
    actions = CardActions(current_run.drop, current_run.pin, current_run.open_place, passage_feedback(view))
    draw_passages(view, actions)
    draw_web(view, actions)
    draw_strips(view)
    draw_opinions(
        view,
        [known_card(name) for name in EVALUATORS],
        ask_opinion,
        current_run.decide_by,
        suited=lambda card: app_state.suited(view.policy.name, card.name),
        has_model=st.session_state["model"] != EXTRACTIVE,
    )
    st.html('<span id="record"></span>')
    with st.expander("How this run went, and its record", icon=":material/receipt_long:"):
        draw_record(trace)
    if passage := current_run.take_place():
        verdicts = [one for one in routed.knowledge.verdicts if one.strip.passage_id == passage.id]
        open_place(passage, verdicts, app_state.workbench())
