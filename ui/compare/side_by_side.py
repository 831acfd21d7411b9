"""What two or more runs have side by side: answer, cost, and the sentences that each answer was given to read."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from crag_core.base.text.display import counted
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.knowledge import Knowledge
from crag_core.trace.reroute import caution, reroute
from crag_core.trace.trace import Trace
from crag_core.view.evidence import Line, side_by_side
from crag_core.view.run_view import name_of, view_run
from crag_core.view.score_words import ALONE
from ui.session import app_state, current_run
from ui.shell.text import paragraphs, plain

LETTERS = "ABCD"


def draw_answer(trace: Trace) -> bool:
    """The answer, or why there is none; returns whether there is one."""
    answer = trace.answer
    if answer is None or answer.state not in (AnswerState.COMPLETE, AnswerState.CUT):
        st.markdown(f":material/block: {plain(answer.message if answer else 'No answer.')}")
        return False
    view = view_run(trace)
    title, why = caution(trace, view.routed, ALONE)
    if title:
        st.markdown(f":orange[:material/help: **{plain(title)}**]")
    if why:
        st.caption(plain(why) if title else f":orange[:material/help: {plain(why)}]")
    st.markdown(paragraphs(view.cited(answer.text)))
    if answer.state is AnswerState.CUT:
        st.caption(f":orange[:material/content_cut: {plain(answer.message)}]")
    return True


def draw_cost(trace: Trace, key: str) -> None:
    st.caption(f":material/receipt: {cost(trace)}")
    if st.button("Open in Ask", key=key, type="tertiary", icon=":material/open_in_new:"):
        open_on_ask(trace)


def cost(trace: Trace) -> str:
    """Calls, tokens and time of a run, and how many grades came from the cache."""
    used = trace.usage
    tokens = used.prompt_tokens + used.completion_tokens
    cached = sum(grade.from_cache for grade in trace.grades or ())
    message = [
        counted(used.calls, "LLM call"),
        f"{tokens:,} tokens" if tokens else "",
        f"{trace.seconds * 1000:,.0f} ms",
        f"{counted(cached, 'grade')} from the cache" if cached else "",
    ]
    return ", ".join(filter(None, message))


def open_on_ask(trace: Trace) -> None:
    """Show a run on the Ask page as it was taken; the sidebar follows where it knows the policy."""
    if trace.settings.policy.name in app_state.policies():
        current_run.open_later(trace)
    else:
        current_run.open_run(trace, own_settings=False)
    st.switch_page("pages/ask.py", query_params={})  # else those that the sidebar is bound to would be in the way


def given_sentences(traces: Sequence[Trace]) -> tuple[Line, ...]:
    """Nothing from a run that broke off before its evidence was put together."""
    nothing = Knowledge((), (), ())
    return side_by_side(
        [reroute(one, one.settings.policy).knowledge if one.context is not None else nothing for one in traces]
    )


def draw_evidence(traces: Sequence[Trace], key: str) -> None:
    """Every sentence that some of them gave its answer to read, with a switch that leaves out what all were given."""
    lines = given_sentences(traces)
    if not lines:
        st.markdown("No answer received evidence.")
        return
    differing, all_of_them = sum(line.differs for line in lines), counted(len(lines), "sentence")
    same = f"All received the same {all_of_them}."
    st.markdown(f"{all_of_them}, {differing} of them not in every answer." if differing else same)
    only = st.toggle("Only what differs", key=key, disabled=not differing)
    st.table(
        sentence_rows(lines, only and bool(differing)), hide_index=True, border="horizontal",
        alt="Sentences that each answer was given",
    )  # fmt: skip


def sentence_rows(lines: Sequence[Line], only_differing: bool) -> list[dict[str, str]]:
    """The letters of those that were given a sentence, below the name of its chunk; every text is escaped."""
    rows, letters, before = [], LETTERS[: len(lines[0].held)], ""
    for line in lines:
        if only_differing and not line.differs:
            continue
        if line.passage.id != before:
            before = line.passage.id
            web = " · from the web" if line.passage.url else ""
            rows.append(dict.fromkeys(letters, "") | {"Sentence": f"**{plain(str(name_of(line.passage)))}**{web}"})
        marks = {
            letter: f":green[**{letter}**]" if held else "–" for letter, held in zip(letters, line.held, strict=True)
        }
        rows.append(marks | {"Sentence": plain(line.text)})
    return rows
