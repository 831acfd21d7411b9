"""The Ask page: the question and its cost, pinned files, examples, earlier runs, and the page before the first run."""

from __future__ import annotations

import json

import streamlit as st

from crag_core.app.background_jobs import Job, RunJob
from crag_core.app.workbench import Choice
from crag_core.base.data_files import DATA
from crag_core.base.errors import CragError
from crag_core.base.text.display import counted, model_calls, shortened
from crag_core.base.types.decisions import Action
from crag_core.pipeline.call_budget import JUDGING
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.standalone import MOST_TURNS
from crag_core.trace.trace import Trace
from crag_core.view.run_view import view_run
from ui.run import share
from ui.run.answer_card.card import ENDINGS
from ui.run.path import draw_small_path
from ui.run.run_actions import AT_ONCE
from ui.run.verdict import COLOURS
from ui.session import app_state, current_run, run_job
from ui.session.current_run import AskPage
from ui.session.demos import demos, open_story
from ui.session.keys import kept
from ui.shell.text import plain

_LONGEST = 1000  # characters
_PLAIN = """<style>
:is(.st-key-route, .st-key-web_mode) { opacity: 0.45; } /* of the sidebar: what plain RAG does not read */
</style>"""
_RECORDED = 3
_LONGEST_TURN = 26


def draw_conversation(run: RunJob | Trace | None) -> None:
    """The questions before the one on the page in one line, each with how it ended; a click opens its run."""
    record = run.progress.trace if isinstance(run, Job) else run
    turns = record.follow_up.history[-MOST_TURNS:] if record and record.follow_up else ()
    if not turns:
        return
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key="turns"):
        for number, turn in enumerate(turns, start=1):
            found = current_run.find_earlier(turn.run)
            label = plain(shortened(found.asked if found else turn.question, _LONGEST_TURN))
            colour, icon = ENDINGS[view_run(found).routed.ending] if found else ("gray", "chevron_right")
            st.button(
                f":{colour}[:material/{icon}:] {label}", key=f"turn_{number}_{turn.run}", on_click=_open_turn,
                args=(turn.run,), type="tertiary", disabled=isinstance(run, Job),
            )  # fmt: skip


def _open_turn(run_id: str) -> None:
    with app_state.reporting():
        found = current_run.find_earlier(run_id) or share.find(run_id)
        if found:
            current_run.open_run(found)
        else:
            app_state.report("This run is not kept here.")


def draw_question(busy: bool) -> None:
    with st.form("ask_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Your question", label_visibility="collapsed", key="ask_question", max_chars=_LONGEST,
            placeholder="Ask about your documents  ( / )", persist_state="session",
        )  # fmt: skip
        st.form_submit_button("Ask", type="primary", icon=":material/send:", disabled=busy, on_click=_ask, args=(True,))
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        _draw_pins(busy)
        examples = st.popover("Examples", icon=":material/lightbulb:", type="tertiary", disabled=busy)
        with examples, st.container(key="choose_example"):
            _draw_suggestions()
        run = current_run.trace()
        if run is not None:
            st.button(
                "New", "ask_new", "New conversation: the next question follows none of those before.",
                current_run.new_conversation, icon=":material/add_comment:", type="tertiary", disabled=busy,
            )  # fmt: skip
        st.toggle(
            "Plain RAG", key=app_state.PLAIN, persist_state="session", disabled=busy,
            help="Retrieved chunks go to the answer as they are: none is graded, nothing is corrected, and the web is "
            "not searched. The policy and the thresholds of the sidebar then count for nothing.",
        )  # fmt: skip
        if st.session_state.get(app_state.PLAIN):
            st.html(_PLAIN)
        if run is not None and not busy and run.decision is not None:
            hint = "Show this run step by step, for people who do not know CRAG."
            if st.button("Story", "ask_story", hint, icon=":material/slideshow:", type="tertiary"):
                open_story(run.id)
        share.draw_sharing(busy)
        _draw_budget(app_state.asked_choice(), app_state.settings().support)


def _draw_suggestions() -> None:
    if app_state.workbench().own_engine is not None:
        st.caption("The sample documents are not in your own engine: these find nothing there.")
    st.caption("About the sample documents")
    with st.container(horizontal=True, gap="xsmall"):
        for number, question in enumerate(_suggested()):
            st.button(question, key=f"ask_suggestion_{number}", on_click=_suggest, args=(question,))


@st.cache_data(show_spinner=False)
def _suggested() -> list[str]:
    lines = (DATA / "questions" / "sample.jsonl").read_text("utf-8").splitlines()
    return [record["question"] for record in map(json.loads, lines) if record["suggested"]]


def _suggest(question: str) -> None:
    st.session_state["ask_question"] = question
    _ask()


def _ask(is_next: bool = False) -> None:
    """For a callback, which comes before all that may end a run of the script; `is_next`: it follows the run shown."""
    question = st.session_state["ask_question"].strip()[:_LONGEST]
    if question:
        kept(AskPage).first = None
        with app_state.reporting():
            after = current_run.trace() if is_next else None
            run_job.ask(question, after, waits=not st.session_state.get(AT_ONCE))


def _draw_pins(busy: bool) -> None:
    """Chooses whole files as evidence; an engine of the user's own lists none."""
    if app_state.workbench().own_engine is not None:
        return
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
            "Read these files whole", list(names), format_func=lambda id_: names.get(id_, "a file that is gone"),
            key="ask_pinned", persist_state="session",
            help="They become the evidence instead of retrieved chunks. Short ones: a model reads only so much.",
        )  # fmt: skip
        st.toggle("Search the other documents too", key="ask_search_too", persist_state="session")


def _draw_budget(choice: Choice, support: str) -> None:
    """The cost in model calls; `support` is who checks the sentences of the answer."""
    calls = choice.calls_by_action(condenses=current_run.trace() is not None)
    more = f", {JUDGING}" if support != WORDS else ""
    if not any(cost.most for cost in calls.values()):
        st.caption(f":material/receipt: {model_calls(0)}{more}")
        return
    if choice.policy.is_plain:
        st.caption(f":material/receipt: LLM calls: {calls[Action.CORRECT]}{more}")
        return
    message = " · ".join(
        f":{COLOURS[action]}[{plain(choice.policy.label(action))}] {cost}" for action, cost in calls.items()
    )
    st.caption(
        f":material/receipt: LLM calls: {message}{more}",
        help="If every reply can be read; one that cannot is asked for once more. Grades from the cache cost nothing.",
    )


def draw_welcome() -> None:
    st.title("CRAG Explorer", anchor=False)
    st.markdown("See why your RAG answered what it answered.")


def draw_recorded() -> None:
    st.subheader("Watch a recorded run", anchor=False)
    for demo in demos()[:_RECORDED]:
        with st.container(border=True):
            words, picture = st.columns([2, 3], vertical_alignment="center")
            with words:
                st.markdown(f"**{plain(demo.title)}**  \n{plain(demo.trace.question)}")
                if st.button("Play", f"demo_{demo.trace.id}", icon=":material/play_circle:"):
                    open_story(demo.trace.id)
            with picture:
                draw_small_path(view_run(demo.trace), f"path_{demo.trace.id}")
