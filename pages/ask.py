"""Ask: the question, the decision with its reasons, the evidence sentence by sentence, and the answer."""

import streamlit as st

from ui.ask.call_budget import draw_budget
from ui.ask.demos import draw_demos
from ui.ask.pinned_files import draw_pins
from ui.ask.session_runs import draw_earlier
from ui.run.job_progress import draw_running, draw_warming
from ui.run.run_page import draw_run
from ui.run.share import open_link
from ui.run.what_if.run_actions import begin
from ui.session import app_state, current_run, run_job
from ui.shell import router
from ui.text import plain

LONGEST_QUESTION = 1000


def ask(question: str) -> None:
    question = question.strip()[:LONGEST_QUESTION]
    if question:
        current_run.leave_first()
        begin(question)


def suggest(question: str) -> None:
    st.session_state["ask_question"] = question
    ask(question)


def draw_question(busy: bool, has_examples: bool) -> None:
    with st.form("ask_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Your question",
            key="ask_question",
            max_chars=LONGEST_QUESTION,
            placeholder="Ask something about your documents",
            persist_state="session",
        )
        if st.form_submit_button("Ask", type="primary", icon=":material/send:", disabled=busy):
            ask(st.session_state["ask_question"])
            st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        draw_pins(busy)
        if has_examples:
            with st.popover("Examples", icon=":material/lightbulb:", type="tertiary", disabled=busy):
                draw_suggestions()
        draw_earlier(busy)
        open_link.draw_sharing(busy)
        draw_budget(app_state.choice(), app_state.settings().support)


def draw_suggestions() -> None:
    st.caption("About the sample documents")
    with st.container(horizontal=True, gap="xsmall"):
        for number, question in enumerate(app_state.suggested_questions()):
            st.button(question, key=f"ask_suggestion_{number}", on_click=suggest, args=(question,))


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
    draw_demos()


router.enter("pages/ask.py")
job = run_job.job()
view = current_run.view() if job is None else None
is_welcome = view is None and job is None
if is_welcome:
    st.title("What does the evidence say?", anchor=False)
draw_question(busy=job is not None, has_examples=not is_welcome)
draw_warming()
if problem := app_state.take_report():
    st.error(plain(problem), icon=":material/error:")
if job is not None:
    draw_running()
elif view is not None:
    draw_run(view)
else:
    draw_welcome()
