"""A recorded run from verdict to record, in two fragments: a moved threshold redraws them and not the page."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from crag_core.answer import EXTRACTIVE
from crag_core.build import EVALUATORS, known_card
from crag_core.labels import About
from crag_core.pipeline import is_waiting
from crag_core.reroute import reroute
from crag_core.types import AnswerState, CorrectionKind, Passage
from ui import labelling, shown, state
from ui.carry_on import ask_opinion, draw_approval, draw_failure, generate
from ui.offers import offer
from ui.render_answer import draw_answer
from ui.render_course import draw_course
from ui.render_feedback import draw_passage_feedback, draw_run_feedback
from ui.render_opinions import draw_opinions
from ui.render_passages import CardActions, draw_passages
from ui.render_path import draw_path
from ui.render_place import open_place
from ui.render_scores import draw_scores
from ui.render_steps import draw_record
from ui.render_strips import draw_strips
from ui.render_verdict import draw_verdict
from ui.render_web import draw_web
from ui.render_what_if import draw_two_answers, draw_what_if
from ui.shown import View


def draw_run(view: View) -> None:
    draw_failure(view.taken)
    if view.taken.passages is None:
        return
    for key, draw in ((shown.STORY, _draw_story), (shown.EVIDENCE, _draw_evidence)):
        shown.mark_drawn(key)
        draw()


@st.fragment(key=shown.STORY)
def _draw_story() -> None:
    """From the verdict to the answer on one screen, and then the scores."""
    view = shown.view()
    if view is None:
        return
    trace, policy, routed = view.trace, view.policy, view.routed
    draw_verdict(trace, policy, routed)
    draw_path(trace, policy, routed)
    draw_course(trace, routed)
    st.html('<span id="answers"></span>')
    _draw_answers(view)
    st.subheader("Scores against thresholds", anchor="scores")
    draw_scores(trace, policy, routed, on_move=shown.move)


def _asks_for_approval(view: View) -> bool:
    return is_waiting(view.taken) and view.routed.decision.wants(CorrectionKind.WEB_SEARCH)


def _draw_answers(view: View) -> None:
    first = shown.first()
    if _asks_for_approval(view):
        draw_approval(view.taken, view.routed)
        return
    if first is not None and first.id != view.taken.id:
        draw_two_answers((first, reroute(first, first.settings.policy)), (view.trace, view.routed))
        st.button("Put the first answer away", icon=":material/close:", type="tertiary", on_click=shown.leave_first)
    else:
        draw_answer(view.trace, view.routed, policy=view.policy)
    if labelling.can_label():
        said, answer = labelling.said(view.taken.id), view.routed.answer
        draw_run_feedback(
            said.get((About.ROUTE, "")),
            label.mark if (label := said.get((About.ANSWER, ""))) else None,
            view.routed.decision.action,
            labelling.label_run,
            has_answer=answer is not None and answer.state is AnswerState.COMPLETE,
        )


@st.fragment(key=shown.EVIDENCE)
def _draw_evidence() -> None:
    """What if, every passage, the web, other evaluators, and the record."""
    view = shown.view()
    if view is None:
        return
    trace, policy, routed = view.trace, view.policy, view.routed
    offered = offer(trace, routed, state.choice(), state.settings().support, state.settings_now())
    if not _asks_for_approval(view) and not view.taken.failure:
        draw_what_if(
            view.taken, trace, policy, view.was, routed, offered, on_undo=_undo, on_generate=lambda: generate(view)
        )
    st.subheader("Passages from your documents", anchor="passages")
    if not trace.passages:
        st.markdown("Nothing was retrieved. Are there documents yet? The Documents page takes them.")
    actions = CardActions(_drop, _pin, shown.open_place, _feedback_of(view))
    draw_passages(trace, routed, policy=policy, was=view.was, edits=trace.edits, actions=actions)
    draw_web(trace, routed, policy=policy, was=view.was, actions=actions)
    draw_strips(trace, policy, routed)
    draw_opinions(
        trace,
        policy,
        [known_card(name) for name in EVALUATORS],
        ask_opinion,
        shown.decide_by,
        suited=lambda card: state.suited(policy.name, card.name),
        has_model=st.session_state["model"] != EXTRACTIVE,
    )
    st.html('<span id="record"></span>')
    with st.expander("How this run went, and its record", icon=":material/receipt_long:"):
        draw_record(trace)
    if passage := shown.take_place():
        verdicts = [one for one in routed.knowledge.verdicts if one.strip.passage_id == passage.id]
        open_place(passage, verdicts, state.workbench())


def _feedback_of(view: View) -> Callable[[Passage], None] | None:
    if not labelling.can_label():
        return None
    said = labelling.said(view.taken.id)

    def draw(passage: Passage) -> None:
        label = said.get((About.PASSAGE, passage.id))
        draw_passage_feedback(passage.id, label.mark if label else None, labelling.label_passage)

    return draw


def _drop(passage_id: str) -> None:
    shown.drop(passage_id)
    shown.redraw()


def _pin(passage_id: str) -> None:
    shown.pin(passage_id)
    shown.redraw()


def _undo() -> None:
    shown.undo()
    st.rerun()
