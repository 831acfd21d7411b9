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

_LATER = (Missing.EXPANSION, Missing.RE_RETRIEVAL)
_UNSEARCHED = (WebOutcome.OFF, WebOutcome.REFUSED, WebOutcome.FAILED, WebOutcome.RATE_LIMITED, WebOutcome.TIMED_OUT)


@dataclass(frozen=True)
class Offer:
    """`reasons` say what would be done; `calls` is what it costs in model calls, if no reply must be asked for twice; `later` cannot be done yet."""

    reasons: tuple[str, ...]
    calls: int
    searches: bool
    later: tuple[str, ...]


def offer(trace: Trace, routed: Reroute, choice: Choice) -> Offer:
    """What "carry it out" means now; no reasons: the record already holds everything under this choice."""
    made = trace.settings
    missing = [item for item in routed.missing if item not in (*_LATER, Missing.ANSWER)]
    reasons = [f"{item.value.partition(':')[0]} (never done in this run)" for item in missing]
    judged_anew = choice.evaluator != made.evaluator.name
    if judged_anew and Missing.GRADES not in missing:
        missing.append(Missing.GRADES)
        reasons.append(f"grades by {known_card(choice.evaluator).title.lower()} instead of {made.evaluator.title.lower()}")
    if choice.top_k != made.top_k:
        reasons.append(f"{choice.top_k} passages instead of {made.top_k}: ask again for that")
    searches = Missing.WEB in missing
    if _could_search(trace, routed, choice):
        missing.append(Missing.WEB)
        searches = True
        reasons.append("a web search")
    if searches and choice.web is WebMode.OFF:
        searches = False
        reasons = [reason for reason in reasons if not reason.startswith("web results")]
        missing.remove(Missing.WEB)
    if Missing.ANSWER in routed.missing or missing:
        missing.append(Missing.ANSWER)
        reasons.append("an answer from this evidence")
    elif choice.model != made.writer:
        missing.append(Missing.ANSWER)
        reasons.append(f"an answer {'in quotations' if choice.model == EXTRACTIVE else f'by {choice.model}'}")
    judge = known_card(choice.evaluator).calls_model
    calls = calls_needed(
        tuple(missing), choice.policy, len(trace.passages or ()), judge=judge, writer=choice.model != EXTRACTIVE
    )
    later = tuple(item.value for item in routed.missing if item in _LATER)
    return Offer(tuple(reasons), calls, searches, later)


def _could_search(trace: Trace, routed: Reroute, choice: Choice) -> bool:
    wanted = routed.decision.wants(CorrectionKind.WEB_SEARCH)
    return wanted and choice.web is not WebMode.OFF and trace.web is not None and trace.web.outcome in _UNSEARCHED
