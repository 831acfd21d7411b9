"""Why a question was not answered from the evidence, and what would help. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crag_core.base.types.answers import Answer
from crag_core.base.types.decisions import CorrectionKind
from crag_core.base.types.knowledge import StripVerdict
from crag_core.base.types.passages import Passage
from crag_core.base.types.web import WEB_WORDS
from crag_core.decision.reasons import reason_in
from crag_core.trace.grounding.quoted_answer import why_doubtful, with_headers
from crag_core.view.run_view import RunView
from crag_core.view.score_words import ALONE

_MOST_NEAREST = 3
_SEARCH = "Let this route search the web: carry it out with the web switched on."


@dataclass(frozen=True)
class Nearest:
    """The best sentence that did not make it into an answer, its score, and what it failed at."""

    text: str
    passage: Passage
    score: float
    why: str


def why_unanswered(view: RunView, answer: Answer) -> str:
    """What stands in place of an answer; where a doubtful one is withheld, in the words of the screen."""
    if not view.abstains:
        return answer.message
    decision = view.routed.decision
    return why_doubtful(decision, view.trace.web, reason_in(ALONE, view.policy, decision))


def nearest_sentences(view: RunView) -> tuple[Nearest, ...]:
    """Those of the kept ones with the best scores, of the others where none is kept; none is called an answer."""
    best = _best_first(view)
    shown = [one for one in best if one.kept] or best
    return tuple(_near(view, one, one.reason) for one in shown[:_MOST_NEAREST])


def nearest_miss(view: RunView) -> Nearest | None:
    """Of the sentences that were struck out; of those that the writer had, if it was given any."""
    routed = view.routed
    given = bool(routed.knowledge.excerpts)
    best = next((one for one in _best_first(view) if one.kept is given), None)
    if best is None:
        return None
    asked = "the policy abstains when in doubt" if view.abstains else "the writer had it, and found no answer in it"
    why = asked if best.kept else best.reason
    if not given and any(one.kind is CorrectionKind.DISCARD and one.passage_id is None for one in routed.decision.plan):
        why = "set aside with all others"
    return _near(view, best, why)


def _best_first(view: RunView) -> list[StripVerdict]:
    scored = (one for one in view.routed.knowledge.verdicts if one.strip.score is not None)
    return sorted(scored, key=lambda one: -(one.strip.score or 0.0))


def _near(view: RunView, verdict: StripVerdict, why: str) -> Nearest:
    strip = verdict.strip
    passage = next(one for one in view.changed.every_passage if one.id == strip.passage_id)
    return Nearest(with_headers(strip, passage), passage, strip.score or 0.0, why)


def ways_out(view: RunView) -> Iterator[str]:
    trace, routed = view.trace, view.routed
    advice = WEB_WORDS[trace.web.outcome].advice if trace.web else _SEARCH
    if routed.decision.wants(CorrectionKind.WEB_SEARCH) and advice:
        yield advice
    yield "Add documents that hold the answer, on the Documents page."
    if view.abstains:
        yield "Choose “Show nearest” in the sidebar to see the nearest sentences."
    elif routed.knowledge.excerpts:
        yield "Ask another model, or none: then the best sentences are quoted as they stand."
