"""A recorded run on the page, in two fragments that a moved threshold redraws."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from crag_core.app.workbench import known_card
from crag_core.base.types import AnswerState, CorrectionKind, Passage
from crag_core.evaluators import EVALUATORS
from crag_core.pipeline.pipeline import is_waiting
from crag_core.trace.feedback import About
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.reroute import reroute
from ui.run.answer import save_feedback
from ui.run.answer.answer import draw_answer
from ui.run.answer.feedback import draw_passage_feedback, draw_run_feedback
from ui.run.opinions.second_opinions import draw_opinions
from ui.run.passages.page_view import open_place
from ui.run.passages.passages import CardActions, draw_passages
from ui.run.passages.sentence_table import draw_strips
from ui.run.passages.web_results import draw_web
from ui.run.path.diagram import draw_path
from ui.run.path.rounds import draw_course
from ui.run.path.steps import draw_record
from ui.run.scores.score_line import draw_scores
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
    trace, policy, routed = view.trace, view.policy, view.routed
    draw_verdict(view.now)
    draw_path(trace, policy, routed)
    draw_course(trace, routed)
    st.html('<span id="answers"></span>')
    _draw_answers(view)
    st.subheader("Scores against thresholds", anchor="scores")
    draw_scores(view.now, on_move=current_run.move)


def _asks_for_approval(view: View) -> bool:
    return is_waiting(view.taken) and view.routed.decision.wants(CorrectionKind.WEB_SEARCH)


def _draw_answers(view: View) -> None:
    first = current_run.first()
    if _asks_for_approval(view):
        draw_approval(view.taken, view.routed)
        return
    if first is not None and first.id != view.taken.id:
        draw_two_answers((first, reroute(first, first.settings.policy)), (view.trace, view.routed))
        st.button(
            "Put the first answer away", icon=":material/close:", type="tertiary", on_click=current_run.leave_first
        )
    else:
        draw_answer(view.now)
    if save_feedback.can_label():
        said, answer = save_feedback.said(view.taken.id), view.routed.answer
        draw_run_feedback(
            said.get((About.ROUTE, "")),
            label.mark if (label := said.get((About.ANSWER, ""))) else None,
            view.routed.decision.action,
            save_feedback.label_run,
            has_answer=answer is not None and answer.state is AnswerState.COMPLETE,
        )


@st.fragment(key=current_run.EVIDENCE)
def _draw_evidence() -> None:
    """What if, every passage, the web, other evaluators, and the record."""
    view = current_run.view()
    if view is None:
        return
    trace, policy, routed = view.trace, view.policy, view.routed
    offered = offer(trace, routed, app_state.choice(), app_state.settings().support, app_state.settings_now())
    if not _asks_for_approval(view) and not view.taken.failure:
        draw_what_if(
            view.taken, trace, policy, view.was, routed, offered, on_undo=_undo, on_generate=lambda: generate(view)
        )
    st.subheader("Chunks from your documents", anchor="passages")
    if not trace.passages:
        st.markdown("Nothing was retrieved. Are there documents yet? The Documents page takes them.")
    actions = CardActions(_drop, _pin, current_run.open_place, _feedback_of(view))
    draw_passages(view.now, view.was, actions)
    draw_web(view.now, view.was, actions)
    draw_strips(view.now)
    draw_opinions(
        view.now,
        [known_card(name) for name in EVALUATORS],
        ask_opinion,
        current_run.decide_by,
        suited=lambda card: app_state.suited(policy.name, card.name),
        has_model=st.session_state["model"] != EXTRACTIVE,
    )
    st.html('<span id="record"></span>')
    with st.expander("How this run went, and its record", icon=":material/receipt_long:"):
        draw_record(trace)
    if passage := current_run.take_place():
        verdicts = [one for one in routed.knowledge.verdicts if one.strip.passage_id == passage.id]
        open_place(passage, verdicts, app_state.workbench())


def _feedback_of(view: View) -> Callable[[Passage], None] | None:
    if not save_feedback.can_label():
        return None
    said = save_feedback.said(view.taken.id)

    def draw(passage: Passage) -> None:
        label = said.get((About.PASSAGE, passage.id))
        draw_passage_feedback(passage.id, label.mark if label else None, save_feedback.label_passage)

    return draw


def _drop(passage_id: str) -> None:
    current_run.drop(passage_id)
    current_run.redraw()


def _pin(passage_id: str) -> None:
    current_run.pin(passage_id)
    current_run.redraw()


def _undo() -> None:
    current_run.undo()
    st.rerun()
