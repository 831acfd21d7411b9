"""The answer, each sentence with what supports it and citations that lead to their passages; or plainly why none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.text.display import shortened
from crag_core.base.types import Answer, AnswerState
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE, quotable, quote
from crag_core.view.answer.answer_blocks import AnswerBlocks, Source, sources_of
from crag_core.view.answer.unanswered import Nearest, unanswered
from crag_core.view.run_view import RunView, name_of
from ui import PARTS
from ui.text import plain

_component = st.components.v2.component(
    "answer",
    html='<div class="answer"></div>',
    css=(PARTS / "answer.css").read_text("utf-8"),
    js=(PARTS / "answer.js").read_text("utf-8"),
)
_NOTES = {
    "doubtful": ":orange[:material/help: {}]",
    "stopped": ":material/stop_circle: {}",
    "failed": ":orange[:material/error: {}]",
    "quoted": ":material/format_quote: {}",
    "written": ":material/edit_note: {}",
    "cut": ":orange[:material/content_cut: {}]",
    "unmeasured": ":material/help: {}",
    "uncited": ":orange[:material/warning: {}]",
}
_LONGEST = 300  # characters


def draw_answer(view: RunView) -> None:
    """The recorded answer, if it belongs to this action and this evidence; the caller offers what is missing."""
    answer, run_id = view.routed.answer, view.trace.id
    if answer is None:
        return
    support = view.trace.support or ()
    if answer.state is AnswerState.CANNOT_ANSWER:
        # Small models refuse even where the answer stands in what they were given, word for word.
        can_quote = answer.writer != EXTRACTIVE and bool(view.routed.knowledge.excerpts)
        if not (can_quote and st.session_state.get("answer_quoted") == run_id):
            _draw_unanswered(view, answer)
            if can_quote:
                _draw_offer(answer, run_id)
            return
        summary = (
            f"{answer.writer} found no answer here; these sentences of the evidence come nearest. No model was called."
        )
        st.caption(plain(summary))
        answer, support = _quoted(view, answer), ()
    blocks = AnswerBlocks(view, answer, support)
    with st.container(border=True, gap="small"):
        st.subheader(plain(blocks.title), anchor=False)
        if answer.text:
            data = {name: to_plain(getattr(blocks, name)) for name in ("blocks", "sum", "about", "marks")}
            _component(data=data, key=f"answer_{run_id}")
        for kind, note in blocks.notes:
            st.caption(_NOTES[kind].format(plain(note)))
        if answer.state is AnswerState.COMPLETE:
            _draw_sources(blocks)


def _draw_offer(answer: Answer, trace_id: str) -> None:
    def show() -> None:
        st.session_state["answer_quoted"] = trace_id

    st.button(
        "Show the quotations", icon=":material/format_quote:", key=f"answer_quote_{trace_id}", on_click=show,
        help=f"The best sentences of what {plain(answer.writer)} was given, word for word. No model is called.",
    )  # fmt: skip


def _quoted(view: RunView, refused: Answer) -> Answer:
    text = quote(view.routed.knowledge, view.changed.all_strips, nearest=view.routed.is_doubtful)
    return replace(refused, text=text, state=AnswerState.COMPLETE, writer=EXTRACTIVE)


def _draw_sources(blocks: AnswerBlocks) -> None:
    """The cited excerpts, beside quotations the others too; all that the writer was given where it cites none."""
    cited, others = ([one for one in blocks.sources if one.is_cited is given] for given in (True, False))
    _draw_list("Sources", cited or others)
    if cited and others and blocks.is_quoted:
        _draw_list("Further evidence", others)


def _draw_list(title: str, shown: Sequence[Source]) -> None:
    lines = (
        f"[\\[{one.number}\\]](#{one.label.anchor}) {plain(str(one.label.name))} :gray[· {plain(one.quoted)}]"
        for one in shown
    )
    st.markdown(f"**{title}**  \n" + "  \n".join(lines))


# --- no answer ------------------------------------------------------------------------------------------------------


def _draw_unanswered(view: RunView, answer: Answer) -> None:
    """What was looked for and where, what came nearest, and what can be done."""
    found = unanswered(view)
    with st.container(border=True, gap="small"):
        title = "Not certain enough for an answer" if view.abstains else "Cannot be answered from this evidence"
        st.subheader(f":material/do_not_disturb_on: {title}", anchor=False)
        st.markdown(plain(answer.message))
        if answer.text:
            st.markdown(f"Its words: “{plain(shortened(answer.text, _LONGEST))}”")
        asked = [f"“{plain(shortened(words, _LONGEST))}” :gray[{plain(by)}]" for words, by in found.asked]
        _draw_row("Looked for", asked)
        _draw_row("Where", [plain(where) for where in found.where])
        if found.nearest:
            _draw_row("Nearest miss", [_nearest(found.nearest)])
        _draw_row("What you can do", [plain(way) for way in found.ways])
        if view.abstains:
            with st.expander("Nearest sentences", icon=":material/format_quote:"):
                _draw_list("Closest matches; may not answer", sources_of(view))


def _draw_row(title: str, lines: list[str]) -> None:
    name, summary = st.columns([1, 5], gap="small")
    name.markdown(f":gray[{title}]")
    summary.markdown(lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines))


def _nearest(nearest: Nearest) -> str:
    score = f"score {nearest.score:.2f}"
    why = nearest.why if nearest.why.startswith("score ") else f"{score}: {nearest.why}"
    quoted = plain(shortened(quotable(nearest.text) or nearest.text, _LONGEST))
    return f"“{quoted}” :gray[{plain(str(name_of(nearest.passage)))} · {plain(why)}]"
