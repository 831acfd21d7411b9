"""What two or more runs have side by side: answer, cost, and the sentences that each answer was given to read."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from crag_core.base.text.display import clean, counted
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.knowledge import Knowledge
from crag_core.trace.reroute import caution, reroute
from crag_core.trace.trace import Trace
from crag_core.view.evidence import Line, side_by_side
from crag_core.view.run_view import view_run
from ui import PARTS
from ui.session import app_state, current_run
from ui.shell.text import paragraphs, plain

LETTERS = "ABCD"
_CSS = (PARTS / "versus.css").read_text("utf-8")
_LEFT = '<td class="mark left"><span role="img" aria-label="not given">–</span></td>'


def draw_answer(trace: Trace) -> bool:
    """The answer, or why there is none; returns whether there is one."""
    answer = trace.answer
    if answer is None or answer.state not in (AnswerState.COMPLETE, AnswerState.CUT):
        st.markdown(f":material/block: {plain(answer.message if answer else 'No answer.')}")
        return False
    view = view_run(trace)
    title, why = caution(trace, view.routed)
    if title:
        st.markdown(f":orange[:material/help: **{plain(title)}**]")
    if why:
        st.caption(plain(why) if title else f":orange[:material/psychology: {plain(why)}]")
    st.markdown(paragraphs(view.cited(answer.text)))
    if answer.state is AnswerState.CUT:
        st.caption(f":orange[:material/content_cut: {plain(answer.message)}]")
    return True


def draw_cost(trace: Trace, key: str) -> None:
    """The cost of a run, with the button that opens it."""
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


def draw_sentences(names: Sequence[str], lines: Sequence[Line], key: str) -> None:
    """The table of sentences, with a switch that leaves out what all runs were given."""
    differs = any(line.differs for line in lines)
    only = st.toggle("Only what differs", key=key, disabled=not differs)
    st.html(f"<style>{_CSS}</style>{lines_html(names, lines, only and differs)}")


def lines_html(names: Sequence[str], lines: Sequence[Line], only_differing: bool) -> str:
    """A fold for each chunk with a row for each sentence; every text is escaped.

    Open are those of which another run than the first was given something.
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
    message = " · ".join(f"{letter} {count}" for letter, count in zip(LETTERS, counts, strict=False))
    heads = "".join(
        f'<th scope="col">{letter} · {html.escape(clean(name))}</th>'
        for letter, name in zip(LETTERS, names, strict=False)
    )
    is_open = " open" if any(counts[1:]) else ""
    return (
        f"<details{is_open}><summary>{html.escape(clean(f'{passage.source}{page}{where}'))} "
        f"<span>{message} of {counted(len(lines), 'sentence')}</span></summary>"
        f'<table><thead class="unseen"><tr>{heads}<th scope="col">Sentence</th></tr></thead>'
        f"<tbody>{''.join(map(_line_html, lines))}</tbody></table></details>"
    )


def _line_html(line: Line) -> str:
    marks = "".join(
        f'<td class="mark held"><span role="img" aria-label="given">{letter}</span></td>' if held else _LEFT
        for letter, held in zip(LETTERS, line.held, strict=False)
    )
    kind = ' class="differs"' if line.differs else ""
    return f'<tr{kind}>{marks}<td class="text" dir="auto">{html.escape(clean(line.text))}</td></tr>'
