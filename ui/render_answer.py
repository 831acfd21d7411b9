"""The answer with citations that lead to their passages; or plainly why there is none."""

from __future__ import annotations

import re

import streamlit as st

from crag_core.answer import CITATION, EXTRACTIVE, citations
from crag_core.reroute import Reroute
from crag_core.trace import Trace
from crag_core.types import Action, Answer, AnswerState, Excerpt, Origin
from ui.render_passages import anchor, source_line
from ui.text import plain, shortened


def draw_answer(trace: Trace, routed: Reroute) -> None:
    """The recorded answer, if it belongs to this action and this evidence; the caller offers what is missing."""
    answer = routed.answer
    if answer is None:
        return
    with st.container(border=True):
        st.subheader("Answer", anchor=False)
        if answer.text:
            st.markdown(linked(answer.text, trace, routed.knowledge.excerpts))
        _draw_state(answer, routed.decision.action)
        _draw_sources(answer, trace, routed.knowledge.excerpts)


def _draw_sources(answer: Answer, trace: Trace, excerpts: tuple[Excerpt, ...]) -> None:
    """The cited excerpts; all that the writer was given where it cites none, and a word of warning."""
    if answer.state is not AnswerState.COMPLETE:
        return
    used = citations(answer.text, len(excerpts))
    if not used:
        st.caption(":orange[:material/warning: This answer cites nothing. Check it against the evidence it was given:]")
    lines = [_source(number, trace, excerpts[number - 1]) for number in used or range(1, len(excerpts) + 1)]
    st.markdown("**Sources**  \n" + "  \n".join(lines))


def linked(text: str, trace: Trace, excerpts: tuple[Excerpt, ...]) -> str:
    """The text as plain words, with each existing citation [n] as a link to its passage."""

    def one(number: str) -> str:
        index = int(number)
        if not 1 <= index <= len(excerpts):
            return plain(f"[{number}]")
        passage = excerpts[index - 1].passage
        return f"[\\[{index}\\]](#{anchor(passage, _rank(trace, excerpts[index - 1]))})"

    def whole(line: str) -> str:
        parts = CITATION.split(line)
        return "".join(
            " ".join(one(number) for number in re.findall(r"\d+", part)) if at % 2 else _spaced(part)
            for at, part in enumerate(parts)
        )

    return "\n\n".join(whole(line) for line in text.splitlines() if line.strip())


def _spaced(part: str) -> str:
    """`plain` trims the ends; the spaces around a citation must stay."""
    return (" " if part[:1].isspace() else "") + plain(part) + (" " if part[-1:].isspace() and part.strip() else "")


def _rank(trace: Trace, excerpt: Excerpt) -> int:
    passages = trace.all_passages if excerpt.passage.origin is Origin.CORPUS else trace.web and trace.web.passages
    return next(rank for rank, passage in enumerate(passages or (), 1) if passage.id == excerpt.passage.id)


def _source(number: int, trace: Trace, excerpt: Excerpt) -> str:
    quoted = plain(shortened(excerpt.text, 160))
    return f"{source_line(number, excerpt, _rank(trace, excerpt))} :gray[· {quoted}]"


def _draw_state(answer: Answer, action: Action) -> None:
    if answer.state is AnswerState.CANNOT_ANSWER:
        st.warning(plain(answer.message), icon=":material/do_not_disturb_on:", title="Not answered from this evidence")
    elif answer.state is AnswerState.STOPPED:
        st.caption(":material/stop_circle: Stopped by you; this is what was written until then.")
    elif answer.state is AnswerState.FAILED:
        st.caption(":orange[:material/error: The answer broke off here; this is what was written until then.]")
    elif answer.writer == EXTRACTIVE:
        doubt = "" if action is Action.CORRECT else " They are the nearest, and may not answer the question."
        st.caption(
            f":material/format_quote: Extractive: the best kept sentences word for word, no model wrote this.{doubt}"
        )
    else:
        st.caption(f":material/edit_note: Written by {plain(answer.writer)} from the evidence below.")
