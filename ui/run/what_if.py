"""What-if: the changes to a run, their effect, the cost of carrying them out, and a second answer beside the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from crag_core.app.workbench import Choice
from crag_core.base.text.display import model_calls, sentence, shortened
from crag_core.base.types import Usage, WebOutcome
from crag_core.evaluators.policies import known_card, second_card
from crag_core.pipeline.call_budget import calls_needed
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.opinions import same_judge
from crag_core.trace.reroute import Missing, Reroute
from crag_core.trace.trace import RunSettings, Trace
from crag_core.view.evidence import Difference, difference
from crag_core.view.record import spent
from crag_core.view.run_view import RunView, model_name, name_of
from crag_core.view.verdict_lines import changes
from ui.run.answer import draw_answer
from ui.run.verdict import headline
from ui.session.current_run import View
from ui.text import plain

_ANSWERED = (WebOutcome.USED, WebOutcome.EMPTY)


@dataclass(frozen=True)
class Offer:
    """What "carry it out" means now; no `reasons`: the record holds everything under this choice.

    `calls` is what it costs in model calls, if no reply must be asked for twice; and one a sentence of the answer comes
    to them where a model `judges` it.
    """

    reasons: tuple[str, ...]
    calls: int
    searches: bool
    judges: bool = False


def offer(trace: Trace, routed: Reroute, choice: Choice, now: RunSettings | None, support: str = WORDS) -> Offer:
    """`now` is what `choice` runs under, None: it cannot run; `support` who checks the sentences of the answer."""
    needs = _needs(trace, routed, choice, now)
    judge = known_card(choice.evaluator)
    passages = len(routed.decision_path.evidence)
    return Offer(
        reasons=tuple(needs.values()),
        calls=calls_needed(
            tuple(needs),
            choice.policy,
            passages,
            judge,
            writer=choice.model != EXTRACTIVE,
            second=second_card(choice.policy, choice.evaluator, writer=choice.model != EXTRACTIVE),
        ),
        searches=Missing.WEB in needs,
        judges=support != WORDS,
    )


def _needs(trace: Trace, routed: Reroute, choice: Choice, now: RunSettings | None) -> dict[Missing, str]:
    """What has to be supplied, each with the words for it."""
    made = trace.settings
    needs: dict[Missing, str] = {}
    card = known_card(choice.evaluator)
    is_plain = choice.policy.fast_path.always or made.policy.fast_path.always  # then whoever is named grades nothing
    if (choice.pinned, choice.search_too) != (made.pinned, made.search_too):
        needs[Missing.GRADES] = "other pinned files"
    elif choice.collection != made.collection:
        needs[Missing.GRADES] = "another collection"
    elif choice.top_k != made.top_k:
        needs[Missing.GRADES] = f"{choice.top_k} chunks instead of {made.top_k}"
    elif not is_plain and choice.evaluator != made.evaluator.name:
        needs[Missing.GRADES] = f"grades by {card.title.lower()} instead of {made.evaluator.title.lower()}"
    elif not is_plain and card.calls_model and choice.model != made.writer:
        needs[Missing.GRADES] = f"grades by {model_name(choice.model)} instead of {model_name(made.writer)}"
    elif not is_plain and now is not None and not same_judge(made, now):
        needs[Missing.GRADES] = f"grades by {card.title.lower()} in another version"
    for item in (
        Missing.GRADES,
        Missing.SECOND_OPINION,
        Missing.STRIPS,
        Missing.EXTRACTION,
        Missing.EXPANSION,
        Missing.RE_RETRIEVAL,
    ):
        if item is Missing.SECOND_OPINION and not second_card(
            choice.policy, card.name, writer=choice.model != EXTRACTIVE
        ):
            continue
        if item in routed.missing and not (item is Missing.EXTRACTION and choice.model == EXTRACTIVE):
            needs.setdefault(item, item.value.partition(":")[0])
    answered = trace.web is not None and trace.web.outcome in _ANSWERED
    if routed.decision.may_search and choice.web is not WebMode.OFF and not answered:
        needs[Missing.WEB] = "a web search"
    elif Missing.PAGES in routed.missing and choice.web is not WebMode.OFF:
        needs[Missing.PAGES] = "the pages that the search found"
    if needs or Missing.ANSWER in routed.missing:
        needs[Missing.ANSWER] = "an answer from this evidence"
    elif choice.model != made.writer:
        by = "in quotations" if choice.model == EXTRACTIVE else f"by {model_name(choice.model)}"
        needs[Missing.ANSWER] = f"an answer {by}"
    return needs


# --- on the page ------------------------------------------------------------------------------------------------------


_IDLE = (
    "The run as it was taken. Move a threshold, choose another policy or evaluator, drop or pin a chunk: "
    "the difference stands here."
)
_LISTED = 300  # characters of a sentence


def draw_what_if(view: View, offered: Offer, on_undo: Callable[[], None], on_generate: Callable[[View], None]) -> None:
    """Always there, and of much the same height, so that nothing below it jumps when a threshold moves."""
    message = changes(view.taken, view.trace, view.policy)
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
        _draw_difference(view.was, view.routed)
        _draw_offer(offered, view, on_generate)


def _draw_difference(was: Reroute, routed: Reroute) -> None:
    found = difference(was, routed)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{_turned(was, routed)}  {_counts(found)}", width="content")
        pieces = st.popover(
            "Which sentences", type="tertiary", icon=":material/difference:", key="what_if_pieces", on_change="rerun"
        )
    if pieces.open:
        with pieces:
            st.markdown(_pieces(found, was, routed))


def _turned(was: Reroute, routed: Reroute) -> str:
    if was.decision.verdict is routed.decision.verdict:
        return f"Still **{headline(routed.decision)}**"
    return f"**{headline(was.decision)}** → **{headline(routed.decision)}**"


def _counts(found: Difference) -> str:
    """In words and in the signs that the sentences carry; passages that go in whole count as one piece."""
    signs = {"kept": ("green", ""), "gone": ("orange", "− "), "new": ("blue", "+ ")}
    message = [f":{signs[what][0]}-badge[{signs[what][1]}{count} {what}]" for what, count in found.counts]
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


def _draw_offer(offered: Offer, view: View, on_generate: Callable[[View], None]) -> None:
    """What the record lacks for an answer, and the button that supplies it, with its cost."""
    if offered.reasons:
        message = f"**Not in this record yet:** {plain('; '.join(offered.reasons))}."
    elif view.routed.answer:
        message = "The recorded answer was written from exactly this evidence."
    else:
        message = "There is no answer in this record."
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(message, width="content")
        st.button(
            f"Generate this answer ({cost(offered)})" if offered.reasons else "Generate this answer",
            "ask_carry_out",
            on_click=on_generate,
            args=(view,),
            disabled=not offered.reasons,
            icon=":material/play_arrow:",
        )


def cost(offered: Offer) -> str:
    calls = f"{'about ' if offered.calls else ''}{model_calls(offered.calls)}"
    searches = ", 1 web search" if offered.searches else ""
    return f"{calls}{searches}{', and one call a sentence of it' if offered.judges else ''}"


def draw_two_answers(first: RunView, second: RunView) -> None:
    """The run as taken beside the one that was generated from it; one below the other where there is little room."""
    message = changes(first.trace, second.trace, second.policy)
    changed = f"With {'; '.join(message)}." if message else "With the same settings."
    with st.grid(2, min_column_width=420, gap="medium", key="two_answers") as grid:
        for view, title, note in ((first, "First answer", "As the run was taken."), (second, "Second answer", changed)):
            with grid.cell():
                decision = view.routed.decision
                st.markdown(f"**{title}**")
                st.subheader(headline(decision), anchor=False)
                st.markdown(f"{plain(sentence(decision.reason))}  \n:gray[{plain(note)}]")
                draw_answer(view)
                st.caption(f":material/receipt: {spent(view.trace.usage, view.trace.seconds)}")
    added = [step for step in second.trace.steps if step not in first.trace.steps]
    more = spent(sum((step.usage for step in added), Usage()), sum(step.seconds for step in added))
    found = difference(first.routed, second.routed)
    st.markdown(f"Evidence: {_counts(found)} · the second answer took {more} more.")
