"""The answer card: its ending, each sentence with what supports it, its sources; or plainly why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.text.display import counted, shortened
from crag_core.base.text.refusals import says_more
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.decision.reasons import reason_in
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.grounding.quoted_answer import quotable, why_doubtful
from crag_core.view.answer.answer_blocks import AnswerBlocks, Source, sources_of
from crag_core.view.answer.unanswered import Nearest, nearest_miss, nearest_sentences, ways_out, why_unanswered
from crag_core.view.run_view import RunView, name_of
from crag_core.view.score_words import ALONE
from ui import PARTS
from ui.run.answer_card.offer import Offer, cost
from ui.shell.text import plain

_component = st.components.v2.component(
    "answer", html='<div class="answer"></div>', css=(PARTS / "answer.css").read_text("utf-8"),
    js=(PARTS / "answer.js").read_text("utf-8"),
)  # fmt: skip
_NOTES = {
    "doubtful": ":orange[:material/help: {}]",
    "stopped": ":material/stop_circle: {}",
    "failed": ":orange[:material/error: {}]",
    "quoted": ":material/format_quote: {}",
    "written": ":material/edit_note: {}",
    "cut": ":orange[:material/content_cut: {}]",
    "unmeasured": ":material/help: {}",
    "uncited": ":orange[:material/warning: {}]",
    "web": ":orange[:material/public_off: {}]",
}
ENDINGS = {
    AnswerEnding.ANSWERED: ("green", "check"),
    AnswerEnding.FROM_WEB: ("blue", "public"),
    AnswerEnding.DOUBTFUL: ("orange", "help"),
    AnswerEnding.FROM_MEMORY: ("orange", "psychology"),
    AnswerEnding.UNANSWERED: ("gray", "do_not_disturb_on"),
    AnswerEnding.CUT: ("orange", "content_cut"),
    AnswerEnding.STOPPED: ("orange", "stop_circle"),
    AnswerEnding.FAILED: ("orange", "error"),
    AnswerEnding.ASKS_BACK: ("violet", "contact_support"),
    AnswerEnding.NOT_RUN: ("gray", "pending"),
}
OnGenerate = Callable[[Any], None]
"""Given the view on the page."""

_LONGEST = 300  # characters


def draw_answer(view: RunView, offered: Offer | None = None, on_generate: OnGenerate | None = None) -> None:
    """The recorded answer, if it belongs to this action and this evidence; else what is missing, in the same place.

    `offered` is what an answer under the present settings would cost, None where none can be generated here.
    """
    with st.container(border=True, gap="small", key=f"answer_card_{view.trace.id}"):
        _draw_head(view, offered, on_generate)
        answer = view.routed.answer
        if answer is None:
            # As high as the answer was that stood here.
            missing = (offered.missing if offered else "") or "Not run yet: no answer is in this record"
            message = f"{view.not_graded_by or missing}."
            _component(data={"blocks": [], "message": message}, key=f"answer_{view.trace.id}")
            is_another = view.trace.answer and not view.not_graded_by
            with st.container(key=f"answer_foot_{view.trace.id}"):
                st.caption("The recorded answer was written from other evidence." if is_another else "")
        elif answer.state is AnswerState.CANNOT_ANSWER:
            _draw_unanswered(view, answer)
        else:
            _draw_text(AnswerBlocks(view, answer))


def _draw_head(view: RunView, offered: Offer | None, on_generate: OnGenerate | None) -> None:
    answer, said = view.routed.answer, view.routed.said
    colour, icon = ENDINGS[view.routed.ending]
    if offered and offered.is_outdated and answer is not None:
        colour, icon, said = "gray", "history", f"{said} in the original run"
    with st.container(
        horizontal=True,
        vertical_alignment="center",
        horizontal_alignment="distribute",
        key=f"answer_head_{view.trace.id}",
    ):
        missing = offered.missing if offered and answer is not None else ""
        more = f" :small[:gray[{plain(missing)}]]" if missing else ""
        st.markdown(f"#### :{colour}-badge[:material/{icon}: {plain(said)}]{more}", width="content")
        if offered and offered.reasons and on_generate:
            what = "Try again" if offered.tried else "Grade" if offered.grades else "Generate"
            st.button(
                f"{offered.rest or what} ({cost(offered)})", "ask_carry_out", on_click=on_generate, args=(view,),
                icon=":material/play_arrow:", type="primary" if answer is None else "secondary",
            )  # fmt: skip


def _draw_text(blocks: AnswerBlocks) -> None:
    if blocks.answer.text:
        data = {name: to_plain(getattr(blocks, name)) for name in ("blocks", "sum", "about", "marks")}
        _component(data=data, key=f"answer_{blocks.view.trace.id}")
    notes = dict(blocks.notes)
    by = next((_NOTES[kind].format(plain(notes.pop(kind))) for kind in ("quoted", "written") if kind in notes), "")
    for kind, note in notes.items():
        st.caption(_NOTES[kind].format(plain(note)))
    if blocks.answer.state is AnswerState.COMPLETE and blocks.sources:
        _draw_sources(blocks, by)
    elif by:
        st.caption(by)


def _draw_sources(blocks: AnswerBlocks, by: str) -> None:
    """Who wrote it; the cited excerpts, all that the writer was given where it cites none; the others in a fold."""
    cited, others = ([one for one in blocks.sources if one.is_cited is given] for given in (True, False))
    foot = f"answer_foot_{blocks.view.trace.id}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=foot):
        links = (f"[\\[{one.number}\\] {plain(str(one.label.name))}](#{one.label.anchor})" for one in cited or others)
        st.markdown(f":small[:gray[{by}] · {' · '.join(links)}]", width="content")
        if blocks.sources:
            with st.popover(counted(len(blocks.sources), "excerpt"), type="tertiary"):
                st.markdown(_listed([*cited, *others]))


def _listed(shown: Sequence[Source]) -> str:
    return "  \n".join(
        f"[\\[{one.number}\\]](#{one.label.anchor}) {plain(str(one.label.name))} :gray[· {plain(one.quoted)}]"
        for one in shown
    )


# --- before the web is searched ---------------------------------------------------------------------------------------


def draw_nearest(view: RunView) -> None:
    """What the documents say, where a search of the web waits for the user's word."""
    found = nearest_sentences(view)
    if not found:
        return
    colour, icon = ENDINGS[AnswerEnding.DOUBTFUL]
    with st.container(border=True, gap="small", key=f"nearest_{view.trace.id}"):
        st.markdown(f"#### :{colour}-badge[:material/{icon}: Nearest sentences]")
        places = ((one, view.labels[one.passage.id]) for one in found)
        st.markdown(
            "  \n".join(f"[\\[{label.number}\\]](#{label.anchor}) {_quoted(one, _score(one))}" for one, label in places)
        )
        decision = view.routed.decision
        st.caption(plain(why_doubtful(decision, view.trace.web, reason_in(ALONE, view.policy, decision))))


# --- no answer ------------------------------------------------------------------------------------------------------


def _draw_unanswered(view: RunView, answer: Answer) -> None:
    """Why, what came nearest, and what can be done."""
    st.markdown(plain(why_unanswered(view, answer)))
    if says_more(answer.text):
        st.markdown(f"Its words: “{plain(shortened(view.cited(answer.text), _LONGEST))}”")
    for kind, note in AnswerBlocks(view, answer).notes:
        if kind == "web":
            st.caption(_NOTES[kind].format(plain(note)))
    lines = [f":gray[Try]  {plain(' '.join(ways_out(view)))}"]
    if nearest := nearest_miss(view):
        why = nearest.why if nearest.why.startswith("score ") else f"{_score(nearest)}: {nearest.why}"
        lines.insert(0, f":gray[Closest]  {_quoted(nearest, why)}")
    st.markdown("  \n".join(f":small[{line}]" for line in lines))
    if view.abstains:
        with st.popover("Nearest sentences", type="tertiary", icon=":material/format_quote:"):
            st.markdown(f"Closest matches; may not answer.\n\n{_listed(sources_of(view))}")


def _score(nearest: Nearest) -> str:
    return f"score {nearest.score:.2f}"


def _quoted(nearest: Nearest, why: str) -> str:
    quoted = plain(shortened(quotable(nearest.text) or nearest.text, _LONGEST))
    return f"“{quoted}” :gray[{plain(str(name_of(nearest.passage)))} · {plain(why)}]"
