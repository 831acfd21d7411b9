"""The Ask page: the question and its cost, pinned files, examples, earlier runs, and the page before the first run."""

from __future__ import annotations

import streamlit as st

from crag_core.app.workbench import Choice
from crag_core.base.errors import CragError
from crag_core.base.text.display import counted, shortened
from crag_core.base.types import Action
from crag_core.pipeline.call_budget import JUDGING
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.trace import Trace
from ui.run import share
from ui.run.verdict import COLOURS, ICONS
from ui.session import app_state, current_run, run_job
from ui.session.demos import Demo, demos
from ui.text import plain

_LONGEST = 1000  # characters


def draw_question(busy: bool, has_examples: bool) -> None:
    with st.form("ask_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Your question",
            key="ask_question",
            max_chars=_LONGEST,
            placeholder="Ask something about your documents",
            persist_state="session",
        )
        if st.form_submit_button("Ask", type="primary", icon=":material/send:", disabled=busy):
            _ask(st.session_state["ask_question"])
            st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        _draw_pins(busy)
        if has_examples:
            with st.popover("Examples", icon=":material/lightbulb:", type="tertiary", disabled=busy):
                draw_suggestions()
        _draw_earlier(busy)
        _draw_plain(busy)
        share.draw_sharing(busy)
        _draw_budget(app_state.asked_choice(), app_state.settings().support)


def draw_suggestions() -> None:
    st.caption("About the sample documents")
    with st.container(horizontal=True, gap="xsmall"):
        for number, question in enumerate(app_state.suggested_questions()):
            st.button(question, key=f"ask_suggestion_{number}", on_click=_suggest, args=(question,))


def _suggest(question: str) -> None:
    st.session_state["ask_question"] = question
    _ask(question)


def _ask(question: str) -> None:
    question = question.strip()[:_LONGEST]
    if question:
        current_run.leave_first()
        with app_state.reporting():
            run_job.ask(question)


def _draw_pins(busy: bool) -> None:
    """Chooses whole files as evidence."""
    try:
        names = {document.id: document.name for document in app_state.workbench().store.documents()}
    except CragError:  # the Documents page and the sidebar tell
        return
    chosen = [id_ for id_ in st.session_state.get("ask_pinned", []) if id_ in names]
    if gone := len(st.session_state.get("ask_pinned", [])) - len(chosen):
        st.session_state["ask_pinned"] = chosen
        app_state.report(f"{counted(gone, 'pinned file')} is no longer indexed and was unpinned.")
    label = f"{counted(len(chosen), 'pinned file')}" if chosen else "Pin files"
    with st.popover(label, icon=":material/push_pin:", type="secondary" if chosen else "tertiary", disabled=busy):
        st.multiselect(
            "Read these files whole",
            list(names),
            format_func=lambda id_: names.get(id_, "a file that is gone"),
            key="ask_pinned",
            persist_state="session",
            help="They become the evidence instead of retrieved chunks. Short ones: a model reads only so much.",
        )
        st.toggle("Search the other documents too", key="ask_search_too", persist_state="session")


def _draw_plain(busy: bool) -> None:
    st.toggle(
        "Plain RAG",
        key=app_state.PLAIN,
        persist_state="session",
        disabled=busy,
        help="Retrieved chunks go to the answer as they are: none is graded, nothing is corrected, and the web is not "
        "searched. The policy and the thresholds of the sidebar then count for nothing.",
    )


def _draw_earlier(busy: bool) -> None:
    runs = current_run.earlier()
    if not runs:
        return
    with st.popover(f"Earlier ({len(runs)})", icon=":material/history:", type="tertiary", disabled=busy):
        st.caption("Runs of this session, newest first. Each opens as it was taken.")
        for trace in runs:
            key = f"earlier_{trace.id}"
            st.button(_named(trace), key, on_click=current_run.open_run, args=(trace,), type="tertiary")


def _named(trace: Trace) -> str:
    question, settings = plain(shortened(trace.question, 70)), trace.settings
    if trace.decision is None:
        return f":gray[:material/pending:] {question}"
    action = trace.decision.verdict
    if action is None:
        return f":gray[:material/arrow_forward:] {question} :gray[· {plain(settings.policy.title)}]"
    return f":{COLOURS[action]}[:material/{ICONS[action]}:] {question} :gray[· {plain(settings.policy.title)}]"


def _draw_budget(choice: Choice, support: str) -> None:
    """The cost in model calls; `support` is who checks the sentences of the answer."""
    calls = choice.calls_by_action()
    more = "" if support == WORDS else f", {JUDGING}"
    if not any(cost.most for cost in calls.values()):
        st.caption(f":material/receipt: No model call on any route{more}.")
        return
    if choice.policy.fast_path.always:
        st.caption(f":material/receipt: Model calls: {calls[Action.CORRECT]}{more}.")
        return
    message = " · ".join(
        f":{COLOURS[action]}[{plain(choice.policy.route(action).label)}] {cost}" for action, cost in calls.items()
    )
    st.caption(
        f":material/receipt: Model calls by route: {message}{more}",
        help="If every reply can be read; one that cannot is asked for once more. Grades from the cache cost nothing.",
    )


def draw_welcome() -> None:
    st.markdown(
        "Corrective RAG grades the retrieved evidence before it is used. Ask a question and see the score of every "
        "chunk, the sentences that are kept and struck out, and why the question went where it went."
    )
    st.markdown(
        ":green[:material/check_circle: **Correct**] the evidence holds up: it is refined to the sentences that matter"
        "  \n:orange[:material/help: **Ambiguous**] on the subject, but maybe not enough: refined, and the web asked "
        "too  \n:red[:material/cancel: **Incorrect**] it does not fit: it is set aside, and the web is asked instead"
    )
    draw_suggestions()
    st.subheader("Or watch a recorded run", anchor=False)
    st.caption(
        "Recorded on the sample documents: nothing is retrieved, graded or asked now. "
        "The web pages in them were written for the recording."
    )
    with st.grid(3, min_column_width=260, gap="small", key="demos") as grid:
        for demo in demos():
            with grid.cell(), st.container(border=True, height="stretch", gap="xsmall"):
                st.markdown(f"**{plain(demo.title)}**  \n{plain(demo.trace.question)}")
                st.caption(plain(demo.note))
                st.button("Play", f"demo_{demo.trace.id}", on_click=_play, args=(demo,), icon=":material/play_circle:")


def _play(demo: Demo) -> None:
    current_run.leave_first()
    app_state.use_settings_of(demo.trace)
    st.session_state["ask_question"] = demo.trace.question
    run_job.play(demo.trace)
