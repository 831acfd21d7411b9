"""Buttons that continue a recorded run: another route, approval of a web query, resume."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from crag_core.app.workbench import Choice
from crag_core.base.errors import CragError
from crag_core.base.text.display import counted
from crag_core.base.types.questions import FollowUp, Understanding
from crag_core.base.types.steps import StepState
from crag_core.evaluators.policies import known_card
from crag_core.pipeline.condense import confirm
from crag_core.pipeline.web_stages import approve, refuse
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.trace import Trace
from crag_core.view.record import step_title
from ui.run.answer_card.card import ENDINGS
from ui.run.answer_card.offer import Offer, offer, other_chunks
from ui.run.opinions import calls_for
from ui.session import app_state, current_run, run_job
from ui.session.current_run import View
from ui.shell.text import link, plain


def generate(view: View) -> None:
    """For a callback: carry out what is on the page; the answer stands beside the first, if there is one."""
    made = offered(view)
    if made is None:
        return
    if made.grades:
        ask_opinion(app_state.evaluator())
    known = replace(view.trace, web=None) if made.searches else view.trace
    if made.searches:
        current_run.pause().forget()  # this click asks for the search, however short ago the last one was
    if view.taken.answer is not None and view.is_changed:
        current_run.set_baseline()
    with app_state.reporting():
        run_job.go_on(known, app_state.asked_choice())
    st.rerun()


def offered(view: View) -> Offer | None:
    """None for a run that did not come to its end, or whose question waits: it is continued first.

    Where the evaluator of the sidebar has graded nothing of the run, its grades alone: they may bring another decision.
    """
    if view.taken.failure or view.taken.is_unsure:
        return None
    choice = app_state.asked_choice()
    try:
        now = app_state.workbench().engine(choice).settings
    except CragError:  # it cannot work
        now = None
    made = offer(view.trace, view.routed, choice, now, app_state.settings().support)
    card = view.trace.settings.evaluator
    if not view.not_graded_by or card.name == view.taken.settings.evaluator.name or other_chunks(view.taken, choice):
        return made
    return Offer((view.not_graded_by,), calls_for(view.taken, card), searches=False, grades=True)


def ask_opinion(evaluator: str) -> None:
    """For a callback: let another evaluator grade the passages of the run on the page too."""
    with app_state.reporting():
        run_job.start_opinion(evaluator)
    st.rerun()


AT_ONCE = "ask_at_once"
"""Key of the tick by which a question goes on without being looked at."""
_LONGEST = 2000  # characters


def draw_understanding(trace: Trace) -> None:
    """What a question of a conversation is understood as, to be changed before retrieval; or what is asked back."""
    known = trace.follow_up
    if known is None or trace.failure:
        return
    if known.outcome in (Understanding.WAITING, Understanding.UNSURE):
        _draw_question(trace, known)
    elif known.outcome is Understanding.ASKS_BACK:
        _draw_asked_back(trace, known)
    elif known.is_changed:
        st.markdown(
            f":small[:gray[:material/subdirectory_arrow_right: Understood as] {plain(trace.question)} "
            f":gray[· {plain(known.by)}]]"
        )
    if known.note and known.outcome is not Understanding.ASKS_BACK:
        st.caption(f":orange[:material/warning: {plain(known.note)}]")


def _draw_question(trace: Trace, known: FollowUp) -> None:
    """Of one that could not be made a question with the one before, what was typed is there to be completed."""
    before = known.question.removesuffix(known.asked).strip() if trace.is_unsure else ""
    with st.container(border=True, gap="small", key="understood"):
        title = f"After “{plain(before)}”" if before else "Understood as"
        st.markdown(f":small[{title}] :orange-badge[:material/hourglass_top: Waiting for you]")
        question = st.text_input(
            "Understood as",
            known.asked if trace.is_unsure else known.question,
            key=(typed := f"ask_understood_{trace.id}"),
            max_chars=_LONGEST,
            label_visibility="collapsed",
        ).strip()
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Ask this", type="primary", icon=":material/send:", disabled=not question,
                on_click=lambda: _go_on(confirm(trace, st.session_state[typed])),
            )  # fmt: skip
            if trace.is_unsure:
                st.caption("Write it as one question. What was found for both is below, not graded.", width="content")
                return
            st.button("Ask as typed", on_click=_go_on, args=(confirm(trace),))
            st.caption(f"{plain(known.by).capitalize()}, not searched yet.", width="content")
            st.checkbox("Do not wait next time", key=AT_ONCE, persist_state="session")


def _draw_asked_back(trace: Trace, known: FollowUp) -> None:
    colour, icon = ENDINGS[AnswerEnding.ASKS_BACK]
    with st.container(border=True, gap="small", key=f"answer_card_{trace.id}"):
        st.markdown(f"#### :{colour}-badge[:material/{icon}: {AnswerEnding.ASKS_BACK}]")
        st.markdown(plain(known.asks))
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Ask anyway", icon=":material/play_arrow:", on_click=_go_on, args=(confirm(trace),))
            st.caption("Reply in the box above. Nothing was searched yet.", width="content")


def draw_approval(trace: Trace) -> None:
    """The exact query that would leave the machine: approve, edit or refuse; then the pages that would be read."""
    web = trace.web
    if web is not None and web.pages_waiting:
        with st.container(border=True):
            st.subheader(":material/article: Read these pages?", anchor=False)
            st.markdown(
                "The search is done. This machine would ask exactly these addresses for their text, and their sites "
                "for robots.txt; each site sees the address of this machine, and neither your question nor your "
                "documents:"
            )
            st.markdown("\n".join(f"- {link(page.url, page.url)}" for page in web.pages_waiting))
            with st.container(horizontal=True):
                if st.button("Read them", type="primary", icon=":material/article:"):
                    _go_on(approve(trace))
                if st.button("Use the snippets only", icon=":material/block:"):
                    _go_on(refuse(trace))
    elif web is not None:
        with st.container(border=True):
            st.markdown("#### Search the web? :orange-badge[:material/hourglass_top: Waiting for you]")
            searcher = plain(app_state.workbench().searcher.name)
            st.markdown(f"Only this text would go to {searcher} ({plain(web.query_by)}):")
            if trace.settings.policy.web.pages and app_state.workbench().page_reader:
                pages = counted(trace.settings.policy.web.pages, "page")
                st.caption(f"This policy then reads up to {pages} of the results; you are asked before.")
            with st.container(horizontal=True, vertical_alignment="bottom"):
                query = st.text_input(
                    "Query", web.query, key=f"ask_query_{trace.id}", max_chars=200, label_visibility="collapsed"
                ).strip()
                if st.button("Search with this", type="primary", icon=":material/search:", disabled=not query):
                    _go_on(approve(trace, query))
                if st.button("Do not search", icon=":material/block:"):
                    _go_on(refuse(trace))


def draw_failure(trace: Trace) -> None:
    step = trace.failure
    if step is None:
        return
    if step.state is StepState.STOPPED:
        st.info(
            f"Stopped at “{plain(step_title(step.name))}”: {plain(step.summary)} What was done is kept.",
            icon=":material/stop_circle:",
        )
    else:
        # On one line, since an empty one would end the code, and with it the harmlessness.
        hint = f"\n\n`{' '.join(step.hint.split())}`" if step.hint and "`" not in step.hint else ""
        st.error(
            f"{plain(step.summary)} What was done is kept.{hint}",
            title=f"The run broke off at “{plain(step_title(step.name))}”",
            icon=":material/error:",
        )
    own, now = run_job.own_choice(trace), app_state.asked_choice()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Continue from here", icon=":material/play_arrow:", key="ask_continue", on_click=_go_on, args=(trace,)
        )
        if (own.policy.name, own.evaluator, own.model) == (now.policy.name, now.evaluator, now.model):
            return
        st.button(
            "Continue with the sidebar's choice", type="tertiary", key="ask_continue_otherwise",
            on_click=lambda: _go_on(trace, app_state.asked_choice()),
        )  # fmt: skip
        message, other = _describe(own, trace.settings.evaluator.title), _describe(now, known_card(now.evaluator).title)
        st.caption(f"The run goes on as it was begun: {message}. The sidebar has: {other}.")


def _describe(chosen: Choice, judge: str) -> str:
    by = "quotations" if chosen.model == EXTRACTIVE else app_state.called(chosen.model)
    return plain(f"{chosen.policy.title}, graded by {judge.lower()}, answered by {by}")


def _go_on(found: Trace, chosen: Choice | None = None) -> None:
    with app_state.reporting():
        run_job.go_on(found, chosen)
    st.rerun()
