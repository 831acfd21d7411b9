"""The Compare page: configurations, and one question under all of them side by side."""

from __future__ import annotations

import html
import time
from collections.abc import Sequence

import streamlit as st

from crag_core.app.configuration_text import Configuration
from crag_core.app.policy_files import PLAIN
from crag_core.app.workbench import known_card
from crag_core.base.errors import CragError
from crag_core.base.text.display import clean, counted
from crag_core.base.types import AnswerState, Decision, Knowledge
from crag_core.decision.decide import ALWAYS
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.citation_check import Standing, standing
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace
from crag_core.view.evidence_table import Line, side_by_side
from crag_core.view.run_view import model_name
from ui import PARTS
from ui.compare import compare_state
from ui.run.job_progress import waiting_for
from ui.run.verdict import headline
from ui.session import app_state, current_run
from ui.text import paragraphs, plain

_CSS = (PARTS / "versus.css").read_text("utf-8")
_LETTERS = "ABCD"


def draw_configurations(busy: bool) -> None:
    """A card for each, with its letter; buttons that add and remove."""
    chosen = compare_state.configurations()
    with st.grid(compare_state.MOST, min_column_width=200, gap="small") as grid:
        for place, one in enumerate(chosen):
            with grid.cell().container(border=True, height="stretch", gap="xsmall"):
                _draw_card(place, one, busy)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        full, now = compare_state.is_full(), compare_state.sidebar()
        stays = compare_state.is_kept(now) or len(compare_state.kept()) >= compare_state.MOST
        st.button(
            "Keep the sidebar's choice", on_click=compare_state.keep, disabled=busy or stays,
            icon=":material/push_pin:", key="versus_keep",
        )  # fmt: skip
        with st.popover("Add a policy", icon=":material/add:", disabled=busy or full, type="tertiary"):
            for name in compare_state.can_add():
                title = "Plain RAG" if name == PLAIN else app_state.policies()[name].title
                st.button(
                    plain(title), on_click=compare_state.add, args=(name,), key=f"versus_add_{name}", type="tertiary"
                )
        if full:
            is_there = any(one.choice == now.choice for one in chosen)
            rest = "" if is_there else " Remove one to compare the sidebar's choice."
            st.caption(f"At most {compare_state.MOST} at a time.{rest}")


def _draw_card(place: int, one: Configuration, busy: bool) -> None:
    st.markdown(f"**{_LETTERS[place]} · {plain(one.name)}**")
    st.caption(plain(described(one)))
    if compare_state.is_kept(one):
        st.button(
            "Remove", on_click=compare_state.remove, args=(one,), disabled=busy, icon=":material/close:",
            type="tertiary", key=f"versus_remove_{place}",
        )  # fmt: skip
    else:
        st.caption(":material/link: Follows the sidebar")


def described(one: Configuration) -> str:
    """Thresholds, what is read, who grades and who writes."""
    choice = one.choice
    if choice.policy.name == PLAIN:
        return f"Grades nothing, corrects nothing. {counted(choice.top_k, 'chunk')}. {_writer(choice.model)}"
    lower, upper, cutoff = choice.policy.thresholds
    judge = known_card(choice.evaluator).title
    web = "no web search" if choice.web is WebMode.OFF else "web search on"
    read = f"{counted(choice.top_k, 'chunk')}, sentences above {cutoff:.2f}"
    return f"{lower:.3f} and {upper:.3f}, {read}. {judge}, {web}. {_writer(choice.model)}"


def _writer(model: str) -> str:
    return f"Written by {model_name(model)}." if "/" in model else "Quotations."


# One question


def draw_question(busy: bool) -> None:
    with st.form("versus_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Question for all of them", key="versus_question", max_chars=1000, persist_state="session",
            placeholder="Ask something about your documents",
        )  # fmt: skip
        if st.form_submit_button("Compare", type="primary", icon=":material/compare_arrows:", disabled=busy):
            question = st.session_state["versus_question"].strip()
            if question:
                _start(question)


def _start(question: str) -> None:
    try:
        compare_state.start_question(question)
    except CragError as error:
        app_state.report(str(error))
    st.rerun()


@st.fragment(run_every=0.3)
def draw_comparing() -> None:
    job = compare_state.comparing()
    if job is None or not job.is_running:
        st.rerun()
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        seconds = time.monotonic() - job.started_at
        now = job.progress
        st.markdown(f":shimmer[{_LETTERS[now.place]}: {plain(waiting_for(job) or now.step)} … {seconds:.0f} s]")
        st.button(
            "Stopping…" if job.is_stopping else "Stop", icon=":material/stop_circle:", on_click=job.stop,
            disabled=job.is_stopping, key="versus_stop",
        )  # fmt: skip


def draw_runs(found: Sequence[tuple[Configuration, Trace]]) -> None:
    """Verdict, answer and cost of each; then every sentence that some of them gave its answer to read."""
    routes = [reroute(trace, trace.settings.policy) for _, trace in found]
    st.header(plain(found[0][1].question), anchor=False)
    with st.grid(len(found), min_column_width=240, gap="small") as grid:
        for place, ((one, trace), routed) in enumerate(zip(found, routes, strict=True)):
            with grid.cell().container(border=True, height="stretch", gap="small"):
                _draw_run(place, one, trace, routed)
    given = [_given(trace, routed) for (_, trace), routed in zip(found, routes, strict=True)]
    _draw_lines(found, side_by_side(given))


def _given(trace: Trace, routed: Reroute) -> Knowledge:
    """A run that broke off before its evidence was put together has given nothing to read."""
    return Knowledge((), (), ()) if trace.context is None else routed.knowledge


def _draw_run(place: int, one: Configuration, trace: Trace, routed: Reroute) -> None:
    st.markdown(f"**{_LETTERS[place]} · {plain(one.name)}**")
    if trace.failure:
        st.error(plain(f"{trace.failure.summary} {trace.failure.hint}"), icon=":material/error:")
        return
    st.subheader(_head(routed.decision), anchor=False)
    st.caption(plain(f"{routed.decision.reason[:1].upper()}{routed.decision.reason[1:]}."))
    answer = trace.answer
    if answer is None or answer.state is not AnswerState.COMPLETE:
        st.markdown(f":material/block: {plain(answer.message if answer else 'No answer.')}")
    else:
        st.markdown(paragraphs(answer.text))
        st.caption(_supported(trace))
    st.caption(f":material/receipt: {cost(trace)}")
    if st.button("Open in Ask", key=f"versus_open_{place}", type="tertiary", icon=":material/open_in_new:"):
        _open(trace)


def _head(decision: Decision) -> str:
    """Where nobody has judged, no verdict: only the policy's own word for it."""
    return f":gray[{plain(decision.label)}]" if decision.rule == ALWAYS else headline(decision)


def cost(trace: Trace) -> str:
    """Calls, tokens and time of the run itself, and how many grades it did not pay for."""
    used = trace.usage
    tokens = used.prompt_tokens + used.completion_tokens
    cached = sum(grade.from_cache for grade in trace.grades or ())
    message = [
        counted(used.calls, "model call"),
        f"{tokens:,} tokens" if tokens else "",
        f"{trace.seconds * 1000:,.0f} ms",
        f"{counted(cached, 'grade')} from the cache" if cached else "",
    ]
    return ", ".join(filter(None, message))


def _supported(trace: Trace) -> str:
    found = [standing(one.score) for one in trace.support or ()]
    checked = [one for one in found if one is not Standing.UNCHECKED]
    if not checked:
        return ":material/help: no sentence could be checked against its evidence"
    supported = checked.count(Standing.SUPPORTED)
    return f":material/verified: {supported} of {counted(len(checked), 'sentence')} supported by its evidence"


def _open(trace: Trace) -> None:
    """The sidebar follows, where it can have the policy of the run."""
    if trace.settings.policy.name in app_state.policies():
        current_run.open_later(trace)
    else:
        current_run.open_run(trace, own_settings=False)
    st.switch_page("pages/ask.py", query_params={})  # else those that the sidebar is bound to would be in the way


def _draw_lines(found: Sequence[tuple[Configuration, Trace]], lines: Sequence[Line]) -> None:
    st.subheader("What each answer was given to read", anchor=False)
    differing = sum(line.differs for line in lines)
    if not lines:
        st.markdown("None of them kept any sentence.")
        return
    st.markdown(
        f"{counted(len(lines), 'sentence')}, {differing} of them not under every configuration."
        if differing else f"All were given the same {counted(len(lines), 'sentence')}."
    )  # fmt: skip
    only = st.toggle("Only what differs", key="versus_only", disabled=not differing)
    st.html(f"<style>{_CSS}</style>{lines_html([one.name for one, _ in found], lines, only and differing > 0)}")


def lines_html(names: Sequence[str], lines: Sequence[Line], only_differing: bool) -> str:
    """Passage by passage, each to be folded, with a row a sentence; every text is escaped.

    Open are those of which another than the first one keeps something.
    """
    passages: dict[str, list[Line]] = {}
    for line in lines:
        if line.differs or not only_differing:
            passages.setdefault(line.passage.id, []).append(line)
    made = "".join(_passage_html(names, own) for own in passages.values())
    return f'<div class="versus" role="region" aria-label="Sentences" tabindex="0">{made}</div>'


def _passage_html(names: Sequence[str], lines: Sequence[Line]) -> str:
    passage = lines[0].passage
    page = f", page {passage.page}" if passage.page else ""
    where = " · from the web" if passage.url else ""
    counts = [sum(line.held[place] for line in lines) for place in range(len(names))]
    message = " ".join(f"{letter} {count}" for letter, count in zip(_LETTERS, counts, strict=False))
    heads = "".join(
        f'<th scope="col" title="{html.escape(clean(name))}">{letter}</th>'
        for letter, name in zip(_LETTERS, names, strict=False)
    )
    is_open = " open" if any(counts[1:]) else ""
    return (
        f"<details{is_open}><summary>{html.escape(clean(f'{passage.source}{page}{where}'))} "
        f"<span>{message} of {counted(len(lines), 'sentence')}</span></summary>"
        f'<table><thead><tr>{heads}<th scope="col">Sentence</th></tr></thead>'
        f"<tbody>{''.join(map(_line_html, lines))}</tbody></table></details>"
    )


def _line_html(line: Line) -> str:
    marks = "".join(map(_mark_html, line.held))
    kind = ' class="differs"' if line.differs else ""
    return f'<tr{kind}>{marks}<td class="text" dir="auto">{html.escape(clean(line.text))}</td></tr>'


def _mark_html(held: bool) -> str:
    kind, message, sign = ("held", "given", "●") if held else ("left", "not given", "○")
    return f'<td class="mark {kind}"><span role="img" aria-label="{message}">{sign}</span></td>'
