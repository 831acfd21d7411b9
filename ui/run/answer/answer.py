"""The answer, each sentence with what supports it and citations that lead to their passages; or plainly why none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.types import Answer, AnswerState
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE, quote
from crag_core.trace.reroute import Reroute
from crag_core.view.answer.answer_blocks import AnswerBlocks, Source
from crag_core.view.run_view import RunView
from ui import PARTS
from ui.run.answer.unanswered import draw_unanswered
from ui.text import plain

_component = st.components.v2.component(
    "answer",
    html='<div class="answer"></div>',
    css=(PARTS / "answer.css").read_text("utf-8"),
    js=(PARTS / "answer.js").read_text("utf-8"),
)
_NOTES = {
    "stopped": ":material/stop_circle: {}",
    "failed": ":orange[:material/error: {}]",
    "quoted": ":material/format_quote: {}",
    "written": ":material/edit_note: {}",
    "cut": ":orange[:material/content_cut: {}]",
    "unmeasured": ":material/help: {}",
    "uncited": ":orange[:material/warning: {}]",
}


def draw_answer(view: RunView, title: str = "Answer", key: str = "answer") -> None:
    """The recorded answer, if it belongs to this action and this evidence; the caller offers what is missing."""
    answer, run_id = view.routed.answer, view.trace.id
    if answer is None:
        return
    support = view.trace.support or ()
    if answer.state is AnswerState.CANNOT_ANSWER:
        can_quote = _can_quote(answer, view.routed)
        if not (can_quote and st.session_state.get(f"{key}_quoted") == run_id):
            draw_unanswered(view, answer)
            if can_quote:
                _draw_offer(answer, run_id, key)
            return
        summary = (
            f"{answer.writer} found no answer here; these sentences of the evidence come nearest. No model was called."
        )
        st.caption(plain(summary))
        answer, support = _quoted(view, answer), ()
    blocks = AnswerBlocks(view, answer, support)
    with st.container(border=True, gap="small"):
        st.subheader(title, anchor=False)
        if answer.text:
            data = {name: to_plain(getattr(blocks, name)) for name in ("blocks", "sum", "about", "marks")}
            _component(data=data, key=f"{key}_{run_id}")
        for kind, note in blocks.notes:
            st.caption(_NOTES[kind].format(plain(note)))
        if answer.state is AnswerState.COMPLETE:
            _draw_sources(blocks.sources)


def _can_quote(answer: Answer, routed: Reroute) -> bool:
    """Whether a model refused what it was given, as small ones do where the answer stands there word for word."""
    return answer.writer != EXTRACTIVE and bool(routed.knowledge.excerpts)


def _draw_offer(answer: Answer, trace_id: str, key: str) -> None:
    def show() -> None:
        st.session_state[f"{key}_quoted"] = trace_id

    st.button(
        "Show the quotations", icon=":material/format_quote:", key=f"{key}_quote_{trace_id}", on_click=show,
        help=f"The best sentences of what {plain(answer.writer)} was given, word for word. No model is called.",
    )  # fmt: skip


def _quoted(view: RunView, refused: Answer) -> Answer:
    known = view.changed
    strips = (*(known.strips or ()), *((known.web.strips if known.web else None) or ()))
    text = quote(view.routed.knowledge, strips)
    return replace(refused, text=text, state=AnswerState.COMPLETE, writer=EXTRACTIVE)


def _draw_sources(sources: Sequence[Source]) -> None:
    """The cited excerpts; all that the writer was given where it cites none."""
    shown = [one for one in sources if one.is_cited] or sources
    lines = (
        f"[\\[{one.number}\\]](#{one.label.anchor}) {plain(str(one.label.name))} :gray[· {plain(one.quoted)}]"
        for one in shown
    )
    st.markdown("**Sources**  \n" + "  \n".join(lines))
