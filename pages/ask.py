"""Ask: the question, the decision with its reasons, the evidence sentence by sentence, and the answer."""

import streamlit as st

from crag_core.pipeline import is_waiting
from crag_core.reroute import reroute
from crag_core.trace import Trace
from crag_core.types import CorrectionKind
from ui import router, state
from ui.carry_on import begin, draw_approval, draw_failure, draw_offer
from ui.render_answer import draw_answer
from ui.render_budget import draw_budget
from ui.render_course import draw_course
from ui.render_passages import draw_passages
from ui.render_pins import draw_pins
from ui.render_scores import draw_scores
from ui.render_steps import draw_record
from ui.render_verdict import draw_verdict
from ui.render_web import draw_web
from ui.running import draw_running, draw_warming
from ui.text import plain

LONGEST_QUESTION = 1000


def ask(question: str) -> None:
    question = question.strip()[:LONGEST_QUESTION]
    if question:
        begin(lambda pipeline: pipeline.begin(question))


def suggest(question: str) -> None:
    st.session_state["ask_question"] = question
    ask(question)


def draw_question(busy: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
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
        if state.trace() is not None or busy:
            with st.popover("Examples", icon=":material/lightbulb:", disabled=busy):
                draw_suggestions()
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_pins(busy)
        draw_budget(state.choice())


def draw_suggestions() -> None:
    st.caption("Or try one of these")
    with st.container(horizontal=True, gap="xsmall"):
        for number, question in enumerate(state.suggested_questions()):
            st.button(question, key=f"ask_suggestion_{number}", on_click=suggest, args=(question,))


def draw_run(trace: Trace) -> None:
    policy = state.policy()
    routed = reroute(trace, policy)
    draw_failure(trace)
    if trace.passages is None:
        return
    draw_verdict(trace, policy, routed)
    draw_course(trace, routed)
    if is_waiting(trace) and routed.decision.wants(CorrectionKind.WEB_SEARCH):
        draw_approval(trace, routed)
    else:
        draw_answer(trace, routed)
        if not trace.failure:
            draw_offer(trace, routed)
    st.subheader("Scores against thresholds", anchor="scores")
    draw_scores(trace, policy, routed)
    st.subheader("Passages from your documents", anchor="passages")
    if not trace.passages:
        st.markdown("Nothing was retrieved. Are there documents yet? The Documents page takes them.")
    draw_passages(trace, routed)
    draw_web(trace, routed)
    with st.expander("How this run went, and its record", icon=":material/receipt_long:"):
        draw_record(trace)


def draw_welcome() -> None:
    st.markdown(
        "Corrective RAG grades the retrieved evidence before it is used. Ask a question and see the score of every "
        "passage, the sentences that are kept and struck out, and why the question went where it went."
    )
    for name, what in (
        (
            ":green[:material/check_circle: **Correct**]",
            "the evidence holds up: it is refined to the sentences that matter",
        ),
        (
            ":orange[:material/help: **Ambiguous**]",
            "on the subject, but maybe not enough: refined, and the web is asked too",
        ),
        (":red[:material/cancel: **Incorrect**]", "it does not fit: it is set aside, and the web is asked instead"),
    ):
        st.markdown(f"{name} {what}")


router.enter("pages/ask.py")
st.title("What does the evidence say?", anchor=False)
job = state.job()
draw_question(busy=job is not None)
draw_warming()
if problem := state.take_report():
    st.error(plain(problem), icon=":material/error:")
if job is not None:
    draw_running()
elif (shown := state.trace()) is not None:
    draw_run(shown)
else:
    draw_suggestions()
    draw_welcome()
