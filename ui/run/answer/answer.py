"""The answer, each sentence with what supports it and citations that lead to their passages; or plainly why none."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from crag_core.base.text.display import shortened
from crag_core.base.types import Action, Answer, AnswerState, Excerpt, StepName
from crag_core.decision.policy import Policy
from crag_core.trace.edits import edited
from crag_core.trace.grounding.citation_check import WORDS, Standing, summed_up
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE, citations, left_out, quotable, quote
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from ui import PARTS
from ui.run.answer.answer_blocks import SIGNS, Lines, rank_of
from ui.run.answer.unanswered import draw_unanswered
from ui.run.passages.passages import source_line
from ui.text import plain

_component = st.components.v2.component(
    "answer",
    html='<div class="answer"></div>',
    css=(PARTS / "answer.css").read_text("utf-8"),
    js=(PARTS / "answer.js").read_text("utf-8"),
)
_ABOUT = (
    "A score of 0 to 1 says how much of a sentence stands in the evidence: its words, rare ones counting most. A "
    "number, a name or a “not” that the evidence lacks keeps it at 0.50. It compares words and proves nothing: when it "
    "was measured, 83 of 100 sentences with two names swapped still counted as supported, 31 of 100 answers invented "
    "to deceive, and 16 of 100 true sentences did not."
)
_ABOUT_OPINIONS = (
    "A language model was asked of each sentence whether the evidence supports it, but for those that stand there word "
    "for word. It was not told the question, and it may be wrong. How often is not known: measure your model on "
    "sentences that people have labelled, with benchmarks/support.py --judge."
)
_MARKS = {
    Standing.SUPPORTED: "supported, 0.55 or more",
    Standing.WEAK: "weakly supported, 0.35 or more",
    Standing.NONE: "nothing in the evidence supports this",
    Standing.UNCHECKED: "not checked: another language or script, code, or nothing that could be true or false",
}
_OPINIONS = {
    Standing.SUPPORTED: "supported, all of it, or word for word in the evidence",
    Standing.WEAK: "weakly supported: some of it is",
    Standing.NONE: "nothing in the evidence supports this",
    Standing.UNCHECKED: "not checked: the reply could not be read, code, or nothing that could be true or false",
}


def draw_answer(
    trace: Trace, routed: Reroute, title: str = "Answer", key: str = "answer", policy: Policy | None = None
) -> None:
    """The recorded answer, if it belongs to this action and this evidence; the caller offers what is missing.

    `policy` is the one that `routed` was made with; None: that of the run.
    """
    answer = routed.answer
    if answer is None:
        return
    if answer.state is AnswerState.CANNOT_ANSWER:
        if not (_can_quote(answer, routed) and st.session_state.get(f"{key}_quoted") == trace.id):
            draw_unanswered(trace, policy or trace.settings.policy, routed, answer)
            if _can_quote(answer, routed):
                _draw_offer(answer, trace.id, key)
            return
        summary = (
            f"{answer.writer} found no answer here; these sentences of the evidence come nearest. No model was called."
        )
        st.caption(plain(summary))
        trace, answer = replace(trace, support=None), _quoted(trace, routed, answer)
    with st.container(border=True, gap="small"):
        st.subheader(title, anchor=False)
        if answer.text:
            _draw_text(Lines(trace, routed, answer), f"{key}_{trace.id}")
        _draw_state(answer, routed.decision.action)
        if answer is routed.answer:
            _draw_unmeasured(trace, answer)
        _draw_sources(answer, trace, routed.knowledge.excerpts)


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


def _quoted(trace: Trace, routed: Reroute, refused: Answer) -> Answer:
    known = edited(trace)
    strips = (*(known.strips or ()), *((known.web.strips if known.web else None) or ()))
    return replace(refused, text=quote(routed.knowledge, strips), state=AnswerState.COMPLETE, writer=EXTRACTIVE)


def _draw_text(lines: Lines, key: str) -> None:
    # All word for word, as in a quotation, needs no word more than that.
    is_said = bool(lines.support) and not (lines.is_plain and lines.answer.writer == EXTRACTIVE)
    _component(
        data={
            "blocks": lines.blocks(),
            "sum": summed_up(lines.support, lines.judge or WORDS) if is_said else "",
            "about": _ABOUT_OPINIONS if lines.judge else _ABOUT,
            "marks": [(SIGNS[kind], summary) for kind, summary in (_OPINIONS if lines.judge else _MARKS).items()],
        },
        key=key,
    )


def _draw_state(answer: Answer, action: Action) -> None:
    if answer.state is AnswerState.STOPPED:
        why = plain(answer.message or "Stopped.")
        st.caption(f":material/stop_circle: {why} This is what was written until then, unchecked.")
    elif answer.state is AnswerState.FAILED:
        st.caption(
            ":orange[:material/error: The answer broke off here; this is what was written until then, unchecked.]"
        )
    elif answer.writer == EXTRACTIVE:
        doubt = "" if action is Action.CORRECT else " They are the nearest, and may not answer the question."
        st.caption(
            f":material/format_quote: Extractive: the best kept sentences word for word, no model wrote this.{doubt}"
        )
    else:
        st.caption(f":material/edit_note: Written by {plain(answer.writer)} from the evidence below.")
    if cut := left_out(answer.usage):
        st.caption(f":orange[:material/content_cut: {cut}]")


def _draw_unmeasured(trace: Trace, answer: Answer) -> None:
    if trace.support is None and answer.state is AnswerState.COMPLETE:
        summary = (f"{step.summary} {step.hint}" for step in trace.steps if step.name == StepName.CHECK_ANSWER)
        why = next(summary, "not measured in this run")
        st.caption(f":material/help: What supports each sentence was {plain(why)}")


def _draw_sources(answer: Answer, trace: Trace, excerpts: tuple[Excerpt, ...]) -> None:
    """The cited excerpts; all that the writer was given where it cites none, and a word of warning."""
    if answer.state is not AnswerState.COMPLETE:
        return
    used = citations(answer.text, len(excerpts))
    if not used:
        st.caption(":orange[:material/warning: This answer cites nothing. Check it against the evidence it was given:]")
    lines = [_source(number, trace, excerpts[number - 1]) for number in used or range(1, len(excerpts) + 1)]
    st.markdown("**Sources**  \n" + "  \n".join(lines))


def _source(number: int, trace: Trace, excerpt: Excerpt) -> str:
    quoted = plain(shortened(quotable(excerpt.text) or excerpt.text, 160))
    return f"{source_line(number, excerpt, rank_of(trace, excerpt))} :gray[· {quoted}]"
