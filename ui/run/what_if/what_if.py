"""What-if: the changes to a run, their effect, and a second answer beside the first."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from crag_core.base.text.display import counted, sentence, shortened
from crag_core.base.types import Usage
from crag_core.decision.policy import Policy
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from crag_core.view.evidence_diff import Difference, difference
from crag_core.view.run_view import RunView, name_of
from crag_core.view.verdict_lines import changes
from ui.run.answer.answer import draw_answer
from ui.run.verdict import headline
from ui.run.what_if.run_offer import Offer
from ui.text import plain

_IDLE = (
    "The run as it was taken. Move a threshold, choose another policy or evaluator, drop or pin a chunk: "
    "the difference stands here."
)
_LISTED = 300  # characters of a sentence


def draw_what_if(
    taken: Trace,
    trace: Trace,
    policy: Policy,
    was: Reroute,
    routed: Reroute,
    offered: Offer,
    *,
    on_undo: Callable[[], None],
    on_generate: Callable[[], None],
) -> None:
    """Always there, and of much the same height, so that nothing below it jumps when a threshold moves."""
    message = changes(taken, trace, policy)
    with st.container(border=True, key="what_if", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader(":material/alt_route: What if?", anchor="what-if", width="content")
            st.button(
                "Undo all",
                "what_if_undo",
                on_click=on_undo,
                disabled=not message,
                icon=":material/undo:",
                type="tertiary",
            )
        st.markdown(f"**Changed:** {plain('; '.join(message))}." if message else _IDLE)
        _draw_difference(was, routed)
        _draw_offer(offered, routed, on_generate)


def _draw_difference(was: Reroute, routed: Reroute) -> None:
    found = difference(was, routed)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{_turned(was, routed)}  {_counts(found)}", width="content")
        index_writer = st.popover(
            "Which sentences", type="tertiary", icon=":material/difference:", key="what_if_pieces", on_change="rerun"
        )
    if index_writer.open:
        with index_writer:
            st.markdown(_pieces(found, was, routed))


def _turned(was: Reroute, routed: Reroute) -> str:
    if was.decision.action is routed.decision.action:
        return f"Still **{headline(routed.decision)}**"
    return f"**{headline(was.decision)}** → **{headline(routed.decision)}**"


def _counts(found: Difference) -> str:
    """In words and in the signs that the sentences carry; passages that go in whole count as one piece."""
    message = [
        f":{colour}-badge[{sign}{len(pieces)} {what}]"
        for colour, sign, pieces, what in (
            ("green", "", found.kept, "kept"),
            ("orange", "− ", found.gone, "gone"),
            ("blue", "+ ", found.new, "new"),
        )
    ]
    return " ".join([*message, ":gray-badge[in another order]"] if found.reordered else message)


def _pieces(found: Difference, was: Reroute, routed: Reroute) -> str:
    """By passage: what is gone, what is new, what is kept."""
    texts = {verdict.strip.id: verdict.strip.text for verdict in (*was.knowledge.verdicts, *routed.knowledge.verdicts)}
    parts = []
    for change in found.changes:
        lines = [f"**{plain(str(name_of(change.passage)))}**"]
        for sign, colour, pieces in (
            ("−", "orange", change.gone),
            ("+", "blue", change.new),
            ("=", "gray", change.kept),
        ):
            shown = (plain(shortened(texts.get(piece, "the whole chunk"), _LISTED)) for piece in pieces)
            lines += [f":{colour}[**{sign}** {text}]" for text in shown]
        parts.append("  \n".join(lines))
    return "\n\n".join(parts) or "No evidence, then as now."


def _draw_offer(offered: Offer, routed: Reroute, on_generate: Callable[[], None]) -> None:
    """What the record lacks for an answer, and the button that supplies it, with its cost."""
    if offered.reasons:
        message = f"**Not in this record yet:** {plain('; '.join(offered.reasons))}."
    elif routed.answer:
        message = "The recorded answer was written from exactly this evidence."
    else:
        message = "There is no answer in this record."
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(message, width="content")
        st.button(
            f"Generate this answer ({cost(offered)})" if offered.reasons else "Generate this answer",
            "ask_carry_out",
            on_click=on_generate,
            disabled=not offered.reasons,
            icon=":material/play_arrow:",
        )


def cost(offered: Offer) -> str:
    calls = f"about {counted(offered.calls, 'model call')}" if offered.calls else "no model call"
    searches = ", 1 web search" if offered.searches else ""
    return f"{calls}{searches}{', and one call a sentence of it' if offered.judges else ''}"


def draw_two_answers(first: tuple[Trace, Reroute], second: tuple[Trace, Reroute]) -> None:
    """The run as taken beside the one that was generated from it; one below the other where there is little room."""
    message = changes(first[0], second[0], second[0].settings.policy)
    changed = f"With {'; '.join(message)}." if message else "With the same settings."
    with st.grid(2, min_column_width=420, gap="medium", key="two_answers") as grid:
        for (trace, routed), title, note in (
            (first, "First answer", "As the run was taken."),
            (second, "Second answer", changed),
        ):
            with grid.cell():
                _draw_one(trace, routed, title, note)
    _draw_compared(first, second)


def _draw_one(trace: Trace, routed: Reroute, title: str, note: str) -> None:
    decision = routed.decision
    st.markdown(f"**{title}**")
    st.subheader(headline(decision), anchor=False)
    st.markdown(f"{plain(sentence(decision.reason))}  \n:gray[{plain(note)}]")
    draw_answer(RunView(trace, trace.settings.policy, routed))
    st.caption(f":material/receipt: {plain(_spent(trace.usage, trace.seconds))}")


def _draw_compared(first: tuple[Trace, Reroute], second: tuple[Trace, Reroute]) -> None:
    found = difference(first[1], second[1])
    added = [step for step in second[0].steps if step not in first[0].steps]
    usage = sum((step.usage for step in added), Usage())
    seconds = sum(step.seconds for step in added)
    st.markdown(f"Evidence: {_counts(found)} · the second answer took {plain(_spent(usage, seconds))} more.")


def _spent(usage: Usage, seconds: float) -> str:
    return f"{counted(usage.calls, 'model call') if usage.calls else 'no model call'}, {seconds:.1f} s"
