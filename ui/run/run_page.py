"""A recorded run on the page, in two fragments that a moved threshold redraws, and its record."""

from __future__ import annotations

from functools import partial

import streamlit as st

from crag_core.base.text.display import literal
from crag_core.base.types.decisions import CorrectionKind
from crag_core.base.types.grades import EvaluatorCard
from crag_core.base.types.steps import StepState
from crag_core.decision.policy import Policy
from crag_core.evaluators.named.names import is_named
from crag_core.evaluators.policies import OWN_JUDGE, known_card
from crag_core.pipeline.web_stages import is_waiting
from crag_core.trace.trace import Trace
from crag_core.view.record import call_rows, calls_by_step, cost_of, round_rows, settings_of, step_title
from crag_core.view.run_view import RunView, view_run
from crag_core.view.score_words import reason_of
from ui.run.answer_card.beside import draw_consolidated, draw_logged, draw_two_answers
from ui.run.answer_card.card import draw_answer, draw_nearest
from ui.run.feedback import draw_feedback, passage_feedback
from ui.run.opinions import draw_opinions
from ui.run.page_view import open_place
from ui.run.passages import CardActions, draw_passages, draw_web
from ui.run.path import draw_path
from ui.run.run_actions import ask_opinion, draw_approval, generate, offered
from ui.run.verdict import draw_changes, draw_scores, draw_verdict, headline, verdict_row
from ui.session import app_state, current_run
from ui.session.current_run import AskPage, View
from ui.session.fragments import fragment
from ui.session.keys import kept
from ui.shell.text import plain


@fragment(current_run.STORY)
def draw_story() -> None:
    view = current_run.view()
    if view is None:
        return
    above = st.container()
    with verdict_row():  # sent first, since a moved threshold is looked for here
        draw_verdict(view)
        draw_changes(view, kept(AskPage).first, current_run.undo, current_run.open_original)
    with above:
        _draw_answers(view)
        draw_consolidated(view)
        draw_logged(view.taken.logged)
    draw_path(view)
    draw_rounds(view)
    _draw_anchor("scores")
    draw_scores(view, current_run.move)
    if view.is_decided and not (_asks_for_approval(view) or view.taken.is_unsure):
        draw_feedback(view)


def _draw_anchor(name: str) -> None:
    """Where a stage of the path leads; page.css gives it no room."""
    with st.container(key=f"anchor_{name}"):
        st.html(f'<span id="{name}"></span>')


def _asks_for_approval(view: View) -> bool:
    return is_waiting(view.taken) and view.routed.decision.wants(CorrectionKind.WEB_SEARCH)


def _draw_answers(view: View) -> None:
    _draw_anchor("answers")
    if _asks_for_approval(view):
        draw_nearest(view)
        draw_approval(view.taken)
    elif first := current_run.first_beside():
        draw_two_answers(view_run(first), view, offered(view), generate)
        st.button("Hide first answer", icon=":material/close:", type="tertiary", on_click=current_run.hide_first)
    else:
        draw_answer(view, offered(view), generate)


@fragment(current_run.EVIDENCE)
def draw_evidence() -> None:
    view = current_run.view()
    if view is None:
        return
    trace, routed = view.trace, view.routed
    st.subheader("Chunks", anchor="passages")
    if routed.decision.is_from_memory:
        st.markdown("No document was read.")
    elif not trace.passages:
        own = app_state.workbench().own_engine is not None
        st.markdown("Nothing was retrieved." + ("" if own else " Add documents on the Documents page."))
    drop, pin = (partial(current_run.toggle, where=where) for where in ("dropped", "pinned"))
    actions = CardActions(drop, pin, current_run.open_place, passage_feedback(view))
    draw_passages(view, actions)
    draw_web(view, actions)
    if not view.policy.is_plain:
        draw_opinions(
            view,
            app_state.usable_evaluators,
            ask_opinion,
            current_run.decide_by,
            suited=lambda card: _suited(view.policy.name, card),
            has_model=app_state.has_model(),
        )
    _draw_anchor("record")
    drawer = st.expander("Record of this run", key="record_drawer", icon=":material/receipt_long:", on_change="rerun")
    if drawer.open:
        with drawer:
            draw_record(trace)
    draw_model_calls(trace)
    if passage := current_run.take_place():
        verdicts = [one for one in routed.knowledge.verdicts if one.strip.passage_id == passage.id]
        open_place(passage, verdicts, app_state.workbench())


_LONGEST_SHOWN = 50_000  # characters of a message

_ICONS = {
    StepState.DONE: ":green[:material/check_circle:]",
    StepState.SKIPPED: ":gray[:material/do_not_disturb_on:]",
    StepState.FAILED: ":red[:material/error:]",
    StepState.STOPPED: ":orange[:material/stop_circle:]",
    StepState.WAITING: ":orange[:material/hourglass_top:]",
}


def draw_rounds(view: RunView) -> None:
    lines = []
    for number, row in enumerate(round_rows(view), start=1):
        line = f"**{number if row.decision else '+'}** · {plain(row.how)} · {row.found}"
        lines.append(
            f"{line} → {headline(row.decision)}: {plain(reason_of(row.decision, view.policy))}"
            if row.decision
            else line
        )
    if lines:
        with st.container(border=True):
            st.subheader(":material/replay: Retrieved again", anchor=False)
            st.markdown("\n\n".join(lines))


def draw_record(trace: Trace) -> None:
    st.markdown(
        "  \n".join(
            f"{_ICONS[step.state]} **{plain(step_title(step.name))}** {plain(step.summary)} "
            f":gray[:small[{cost_of(step)}]]"
            for step in trace.steps
        )
    )
    if trace.corrections:
        numbers = trace.numbers
        rows = [  # what was really carried out, with the query where there was one
            {
                "Correction": f"**{plain(one.kind.value)}**",
                "Why": plain(one.reason),
                "Query": plain(one.query) or "–",
                "Chunk": str(numbers.get(one.passage_id or "", "all")),
            }
            for one in trace.corrections
        ]
        st.table(rows, hide_index=True, border="horizontal", alt="Corrections that were carried out, in order")
    st.markdown("  \n".join(f":gray[{name}] {plain(value)}" for name, value in settings_of(trace)))


def draw_model_calls(trace: Trace) -> None:
    """What each model call sent and got, one at a time; folded at first, and drawn only when it is open."""
    if not trace.calls:
        return
    count = sum(call.usage.calls for call in trace.calls)
    drawer = st.expander(f"LLM calls ({count})", key="calls_drawer", icon=":material/forum:", on_change="rerun")
    if not drawer.open:
        return
    with drawer:
        st.caption(f"{plain(calls_by_step(trace))}. A grade from the cache makes no call.")
        rows = call_rows(trace)
        row = rows[st.selectbox("Call", range(len(rows)), format_func=lambda place: rows[place].title)]
        if row.remark:
            st.caption(f":material/warning: {plain(row.remark)}")
        for role, text in row.messages:
            _draw_message(role, text)
        if row.messages:
            _draw_message("reply", row.reply or "(none)")


def _draw_message(role: str, text: str) -> None:
    st.markdown(f"**{plain(role)}**")
    st.code(literal(text[:_LONGEST_SHOWN]), language=None, wrap_lines=True)
    if len(text) > _LONGEST_SHOWN:
        st.caption(f"The first {_LONGEST_SHOWN:,} of {len(text):,} characters; the exported record has all.")


def _suited(policy: str, card: EvaluatorCard) -> Policy:
    """One of others, or not known here, keeps the thresholds of the record: its calibration may be another, or none."""
    here = card if is_named(card.name) else app_state.evaluators().get(card.name, card)
    return app_state.policies()[policy].with_thresholds_for(here, known_card(OWN_JUDGE))
