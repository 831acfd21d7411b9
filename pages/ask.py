"""Ask: the question, the decision with its reasons, the evidence sentence by sentence, and the answer."""

import streamlit as st

from crag_core.errors import CragError
from crag_core.pipeline import approve, is_waiting, refuse
from crag_core.policy import Policy
from crag_core.reroute import reroute
from crag_core.trace import Trace
from crag_core.types import StepState
from ui import router, state
from ui.offers import offer
from ui.render_answer import draw_answer
from ui.render_passages import draw_passages
from ui.render_policies import draw_policies
from ui.render_scores import draw_scores
from ui.render_steps import draw_record
from ui.render_verdict import draw_verdict
from ui.render_web import draw_web
from ui.running import draw_running, draw_warming
from ui.text import counted, plain

LONGEST_QUESTION = 1000


def ask(question: str) -> None:
    question = question.strip()[:LONGEST_QUESTION]
    if question:
        begin(lambda pipeline: pipeline.begin(question))


def begin(begun, chosen=None) -> None:
    try:
        state.start(begun, chosen)
    except CragError as error:
        st.session_state["ask_problem"] = str(error)


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


def draw_suggestions() -> None:
    st.caption("Or try one of these")
    with st.container(horizontal=True, gap="xsmall"):
        for number, question in enumerate(state.suggested_questions()):
            st.button(question, key=f"ask_suggestion_{number}", on_click=suggest, args=(question,))


def draw_offer(trace: Trace, policy: Policy) -> None:
    """What the present choice would do beyond the record, with its cost, behind one button."""
    routed = reroute(trace, policy)
    offered = offer(trace, routed, state.choice())
    if offered.not_yet:
        st.info(
            f"This policy would also want {plain('; '.join(offered.not_yet))}. "
            "This version decides that, but does not carry it out yet.",
            icon=":material/construction:",
        )
    if not offered.reasons:
        return
    calls = f"about {counted(offered.calls, 'model call')}" if offered.calls else "no model call"
    cost = f"{calls}, 1 web search" if offered.searches else calls
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f":material/playlist_add: **Not in this record yet:** {plain('; '.join(offered.reasons))}.")
        if st.button(f"Carry it out ({cost})", icon=":material/play_arrow:", key="ask_carry_out"):
            begin(lambda pipeline: pipeline.adopt(trace))
            st.rerun()


def draw_approval(trace: Trace) -> None:
    """The exact query that would leave the machine: approve, edit or refuse."""
    with st.container(border=True):
        st.subheader(":material/public: Search the web?", anchor=False)
        st.markdown(
            f"{plain(trace.decision.reason if trace.decision else '').capitalize()}. Exactly this text would go to "
            f"DuckDuckGo, and nothing else ({plain(trace.web.query_by if trace.web else '')}):"
        )
        query = st.text_input("Query", trace.web.query if trace.web else "", key=f"ask_query_{trace.id}", max_chars=200)
        with st.container(horizontal=True):
            if st.button("Search with this", type="primary", icon=":material/search:", disabled=not query.strip()):
                begin(lambda _: approve(trace, query.strip()), state.choice_of(trace))
                st.rerun()
            if st.button("Do not search", icon=":material/block:"):
                begin(lambda _: refuse(trace), state.choice_of(trace))
                st.rerun()


def draw_failure(trace: Trace) -> None:
    step = trace.failure
    if step is None:
        return
    if step.state is StepState.STOPPED:
        st.info(
            f"Stopped at “{plain(step.name)}”: {plain(step.summary)} What was done is kept.",
            icon=":material/stop_circle:",
        )
    else:
        hint = f"\n\n`{step.hint}`" if step.hint and "`" not in step.hint else ""
        st.error(
            f"{plain(step.summary)} What was done is kept.{hint}",
            title=f"The run broke off at “{step.name}”",
            icon=":material/error:",
        )
    if st.button("Continue from here", icon=":material/play_arrow:", key="ask_continue"):
        begin(lambda pipeline: pipeline.adopt(trace))
        st.rerun()


def draw_run(trace: Trace) -> None:
    policy = state.policy()
    routed = reroute(trace, policy)
    draw_failure(trace)
    if trace.passages is None:
        return
    draw_verdict(trace, policy, routed)
    if is_waiting(trace):
        draw_approval(trace)
    else:
        draw_answer(trace, routed)
        if not trace.failure:
            draw_offer(trace, policy)
    st.subheader("Scores against thresholds", anchor="scores")
    draw_scores(trace, policy, routed)
    st.subheader("Passages from your documents", anchor="passages")
    if not trace.passages:
        st.markdown("Nothing was retrieved. Are there documents yet? The Documents page takes them.")
    draw_passages(trace, routed)
    draw_web(trace, routed)
    with st.expander("What every policy makes of these scores", icon=":material/compare_arrows:"):
        draw_policies(trace, state.policies())
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
if problem := st.session_state.pop("ask_problem", None):
    st.error(plain(problem), icon=":material/error:")
if job is not None:
    draw_running()
elif (shown := state.trace()) is not None:
    draw_run(shown)
else:
    draw_suggestions()
    draw_welcome()
