"""The Compare page: configurations, and one question under all of them side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from crag_core.app.choice import Configuration
from crag_core.base.text.display import counted, readable, sentence
from crag_core.decision.policy import STAND_IN
from crag_core.evaluators.policies import PLAIN, known_card
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.citation_check import short_sum
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from crag_core.view.record import step_title
from crag_core.view.run_view import model_name
from crag_core.view.score_words import reason_of, threshold_names
from ui.compare import compare_state
from ui.compare.side_by_side import LETTERS, draw_answer, draw_cost, draw_evidence
from ui.run.job_progress import draw_stop, waiting_for
from ui.run.verdict import headline
from ui.session import app_state
from ui.session.fragments import ticking
from ui.shell.text import plain


def draw_configurations(busy: bool) -> None:
    """A card for each, with its letter; buttons that add and remove."""
    chosen = compare_state.configurations()
    with st.grid(compare_state.MOST, min_column_width=200, gap="small") as grid:
        for place, one in enumerate(chosen):
            with grid.cell().container(border=True, height="stretch", gap="xsmall"):
                _draw_card(place, one, busy)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        full, now, stored = len(chosen) >= compare_state.MOST, compare_state.sidebar(), compare_state.stored()
        stays = now in stored or len(stored) >= compare_state.MOST
        st.button(
            "Keep sidebar settings", on_click=compare_state.keep, disabled=busy or stays,
            icon=":material/push_pin:", key="versus_keep",
        )  # fmt: skip
        policies = st.popover("Add a policy", icon=":material/add:", disabled=busy or full, type="tertiary")
        with policies, st.container(key="choose_policy"):
            for name in compare_state.can_add():
                title = "Plain RAG" if name == PLAIN else app_state.policies()[name].title
                st.button(
                    plain(title), on_click=compare_state.add, args=(name,), key=f"versus_add_{name}", type="tertiary"
                )
        if full:
            rest = "" if now in [one.choice for one in chosen] else " Remove one to compare the sidebar settings."
            st.caption(f"At most {compare_state.MOST} at a time.{rest}")


def _draw_card(place: int, one: Configuration, busy: bool) -> None:
    st.markdown(f"**{LETTERS[place]} · {plain(one.name)}**")
    st.caption("  \n".join(map(plain, _describe(one))))
    if one.choice in compare_state.stored():
        st.button(
            "Remove", on_click=compare_state.remove, args=(one.choice,), disabled=busy, icon=":material/close:",
            type="tertiary", key=f"versus_remove_{place}",
        )  # fmt: skip
    else:
        st.caption(":material/link: Follows the sidebar")


def _describe(one: Configuration) -> tuple[str, ...]:
    """Thresholds; who grades and what is retrieved; who writes."""
    choice = one.choice
    where = f" in {choice.collection}" if choice.collection else ""
    if choice.policy.name == PLAIN:
        return "No grading, no correction", counted(choice.top_k, "chunk") + where, _writer(choice.model)
    lower, upper, cutoff = choice.policy.thresholds
    judge = known_card(choice.evaluator).title
    web = "no web" if choice.web is WebMode.OFF else "web search"
    doubtful = app_state.DOUBTFUL_TITLES[choice.policy.doubtful].lower()
    is_stand_in = choice.model == EXTRACTIVE and choice.policy.needs_model
    first, second = threshold_names(choice.policy)
    return (
        f"{first.capitalize()} {readable(lower)[0]}, {second} {readable(upper)[0]}, cut-off {readable(cutoff)[0]}",
        f"{judge}, {counted(choice.top_k, 'chunk')}{where}, {web}",
        f"{_writer(choice.model)}, {doubtful} if doubtful",
        *([f"{STAND_IN.capitalize()}: {choice.policy.without_model}"] if is_stand_in else []),
    )


def _writer(model: str) -> str:
    return f"Answer by {model_name(model)}" if "/" in model else "Quotations"


def draw_question(busy: bool) -> None:
    with st.form("versus_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Question for all of them", key="versus_question", max_chars=1000, persist_state="session",
            placeholder="Ask something about your documents",
        )  # fmt: skip
        st.form_submit_button(
            "Compare", type="primary", icon=":material/compare_arrows:", disabled=busy, on_click=_compare
        )


def _compare() -> None:
    if question := st.session_state["versus_question"].strip():
        with app_state.reporting():
            compare_state.start_question(question)


@ticking()
def draw_comparing() -> None:
    job = compare_state.comparing()
    if job is None or not job.is_running:
        st.rerun()
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        seconds = time.monotonic() - job.started_at
        now = job.progress
        doing = waiting_for(job) or step_title(now.step)
        st.markdown(f":shimmer[{LETTERS[now.place]}: {plain(doing)} … {seconds:.0f} s]")
        draw_stop(job, "versus_stop")


def draw_runs(found: Sequence[tuple[str, Trace]]) -> None:
    """Verdict, answer and cost of each; then every sentence that some of them gave its answer to read."""
    st.header(plain(found[0][1].question), anchor=False)
    with st.grid(len(found), min_column_width=240, gap="small") as grid:
        for place, (name, trace) in enumerate(found):
            with grid.cell().container(border=True, height="stretch", gap="small"):
                _draw_run(place, name, trace)
    st.subheader("Evidence of each answer", anchor=False)
    draw_evidence([trace for _, trace in found], "versus_only")


def _draw_run(place: int, name: str, trace: Trace) -> None:
    st.markdown(f"**{LETTERS[place]} · {plain(name)}**")
    if trace.failure:
        st.error(plain(f"{trace.failure.summary} {trace.failure.hint}"), icon=":material/error:")
        return
    routed = reroute(trace, trace.settings.policy)
    decision = routed.decision
    st.subheader(headline(decision), anchor=False)
    is_told = decision.verdict or decision.is_from_memory
    reason = reason_of(decision, routed.policy) if is_told else "chunks used as retrieved, nothing graded"
    st.caption(plain(sentence(reason)))
    if draw_answer(trace):
        st.caption(_supported(trace))
    draw_cost(trace, f"versus_open_{place}")


def _supported(trace: Trace) -> str:
    checked = [one for one in trace.support or () if one.score is not None]
    if not checked:
        return ":material/help: no sentence checked"
    return f":material/verified: {short_sum(checked, trace.settings.support)}"
