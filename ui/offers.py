"""What the present choice would do beyond what a run has recorded, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.answer import EXTRACTIVE
from crag_core.budget import calls_needed
from crag_core.build import Choice, known_card
from crag_core.reroute import Missing, Reroute
from crag_core.run import WebMode
from crag_core.trace import Trace
from crag_core.types import CorrectionKind, WebOutcome

_NOT_YET = (Missing.EXPANSION, Missing.RE_RETRIEVAL)
"""Corrections that are decided and shown, but that this version does not carry out."""

_ANSWERED = (WebOutcome.USED, WebOutcome.EMPTY)


@dataclass(frozen=True)
class Offer:
    """What "carry it out" means now; no `reasons`: the record holds everything under this choice.

    `calls` is what it costs in model calls, if no reply must be asked for twice. `not_yet` cannot be done at all.
    """

    reasons: tuple[str, ...]
    calls: int
    searches: bool
    not_yet: tuple[str, ...]


def offer(trace: Trace, routed: Reroute, choice: Choice) -> Offer:
    needs = _needs(trace, routed, choice)
    judge = known_card(choice.evaluator).calls_model
    writer = choice.model != EXTRACTIVE
    return Offer(
        reasons=tuple(needs.values()),
        calls=calls_needed(tuple(needs), choice.policy, len(trace.passages or ()), judge=judge, writer=writer),
        searches=Missing.WEB in needs,
        not_yet=tuple(item.value for item in routed.missing if item in _NOT_YET),
    )


def _needs(trace: Trace, routed: Reroute, choice: Choice) -> dict[Missing, str]:
    """What has to be supplied, each with the words for it."""
    made = trace.settings
    needs: dict[Missing, str] = {}
    card = known_card(choice.evaluator)
    if choice.top_k != made.top_k:
        needs[Missing.GRADES] = f"{choice.top_k} passages instead of {made.top_k}"
    elif choice.evaluator != made.evaluator.name:
        needs[Missing.GRADES] = f"grades by {card.title.lower()} instead of {made.evaluator.title.lower()}"
    elif card.calls_model and choice.model != made.writer:
        needs[Missing.GRADES] = f"grades by {model_name(choice.model)} instead of {model_name(made.writer)}"
    for item in (Missing.GRADES, Missing.STRIPS, Missing.EXTRACTION):
        if item in routed.missing and not (item is Missing.EXTRACTION and choice.model == EXTRACTIVE):
            needs.setdefault(item, item.value.partition(":")[0])
    answered = trace.web is not None and trace.web.outcome in _ANSWERED
    if routed.decision.wants(CorrectionKind.WEB_SEARCH) and choice.web is not WebMode.OFF and not answered:
        needs[Missing.WEB] = "a web search"
    if needs or Missing.ANSWER in routed.missing:
        needs[Missing.ANSWER] = "an answer from this evidence"
    elif choice.model != made.writer:
        by = "in quotations" if choice.model == EXTRACTIVE else f"by {model_name(choice.model)}"
        needs[Missing.ANSWER] = f"an answer {by}"
    return needs


def model_name(choice: str) -> str:
    """The model's own name in a choice such as "ollama/llama3.2"."""
    return choice.partition("/")[2] or choice
