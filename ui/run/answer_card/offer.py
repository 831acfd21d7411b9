"""What an answer under the present settings lacks in the record, and what supplying it would cost."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.app.workbench import Choice
from crag_core.base.text.display import counted, model_calls
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.grades import Grade
from crag_core.base.types.web import WebOutcome
from crag_core.evaluators.policies import known_card
from crag_core.pipeline.call_budget import calls_needed
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.reroute import Missing, Reroute
from crag_core.trace.trace import RunSettings, Trace
from crag_core.view.path.stages import search_failed
from crag_core.view.run_view import model_name

_REST = "the rest of the answer"
_BY_MODEL = (Missing.SUFFICIENCY, Missing.QUESTION_CLASS, Missing.CONSOLIDATION, Missing.EXTRACTION)
"""What nobody needs who has no language model."""


@dataclass(frozen=True)
class Offer:
    """What "carry it out" means now; no `reasons`: the record holds everything under this choice.

    `calls` is what it costs in model calls, if no reply must be asked for twice; and one a sentence of the answer comes
    to them where a model `judges` it. `tried` says what became of the search that is all that is missing; "": it was
    not made, or more is missing. `is_outdated`: other chunks or grades would come of it than the recorded answer has.
    `grades`: the chunks are graded, and nothing else is done before that is seen. `rest` is what it is called where the
    record holds a part of the answer or of the grades.
    """

    reasons: tuple[str, ...]
    calls: int
    searches: bool
    judges: bool = False
    tried: str = ""
    is_outdated: bool = False
    grades: bool = False
    rest: str = ""

    @property
    def missing(self) -> str:
        """ "Not run yet: web search, answer", "Web search failed (timed out)"; "" where nothing is."""
        return self.tried or (f"Not run yet: {', '.join(self.reasons)}" if self.reasons else "")


def offer(trace: Trace, routed: Reroute, choice: Choice, now: RunSettings | None, support: str = WORDS) -> Offer:
    """`now` is what `choice` runs under, None: it cannot run; `support` who checks the sentences of the answer."""
    missed = to_ask_again(trace, routed)
    needs = _needs(trace, routed, choice, now)
    is_rest = needs.get(Missing.GRADES) == _rest(missed)
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
            ungraded=len(missed) if is_rest else 0,
        ),
        searches=Missing.WEB in needs,
        judges=support != WORDS,
        tried=_tried(trace) if set(needs) <= {Missing.WEB, Missing.ANSWER} and Missing.WEB in needs else "",
        is_outdated=Missing.GRADES in needs,
        rest="Grade the rest" if is_rest else "Continue" if tuple(needs.values()) == (_REST,) else "",
    )


def _tried(trace: Trace) -> str:
    outcome = trace.web.outcome if trace.web else None
    if outcome is WebOutcome.REFUSED:
        return "Web search refused"
    return search_failed(outcome) if outcome and outcome.is_failure else ""


def _needs(trace: Trace, routed: Reroute, choice: Choice, now: RunSettings | None) -> dict[Missing, str]:
    made = trace.settings
    needs: dict[Missing, str] = {}
    card = known_card(choice.evaluator)
    is_plain = choice.policy.is_plain or made.policy.is_plain  # then whoever is named grades nothing
    if other := other_chunks(trace, choice):
        needs[Missing.GRADES] = other
    elif not is_plain and choice.evaluator != made.evaluator.name:
        needs[Missing.GRADES] = f"grades by {card.title.lower()} instead of {made.evaluator.title.lower()}"
    elif not is_plain and card.calls_model and choice.model != made.writer:
        needs[Missing.GRADES] = f"grades by {model_name(choice.model)} instead of {model_name(made.writer)}"
    elif not is_plain and now is not None and not made.same_judge(now):
        needs[Missing.GRADES] = f"grades by {card.title.lower()} in another version"
    elif not is_plain and (missed := to_ask_again(trace, routed)):
        needs[Missing.GRADES] = _rest(missed)
    for item in Missing:
        is_elsewhere = item in (Missing.WEB, Missing.PAGES, Missing.ANSWER)
        if item in routed.missing and not is_elsewhere and not (choice.model == EXTRACTIVE and item in _BY_MODEL):
            by_whom = item is Missing.GRADES
            needs.setdefault(item, f"grades by {card.title.lower()}" if by_whom else item.value.partition(":")[0])
    answered = trace.web is not None and trace.web.outcome.is_reply
    if routed.decision.may_search and choice.web is not WebMode.OFF and not answered:
        needs[Missing.WEB] = "another web search" if _tried(trace) else "web search"
    elif Missing.PAGES in routed.missing and choice.web is not WebMode.OFF:
        needs[Missing.PAGES] = "the pages found"
    if routed.answer and routed.answer.state is AnswerState.CUT and not needs and choice.model == made.writer:
        needs[Missing.ANSWER] = _REST
    elif needs or Missing.ANSWER in routed.missing:
        needs[Missing.ANSWER] = "answer"
    elif choice.model != made.writer:
        by = "in quotations" if choice.model == EXTRACTIVE else f"by {model_name(choice.model)}"
        needs[Missing.ANSWER] = f"answer {by}"
    return needs


def to_ask_again(trace: Trace, routed: Reroute) -> list[Grade]:
    """The grades that an outage cost, of the chunks that are looked at."""
    grades = (trace.grade_of(chunk.id) for chunk in routed.decision_path.looked_at)
    return [one for one in grades if one and one.retryable]


def _rest(missed: list[Grade]) -> str:
    return f"grades of {counted(len(missed), 'chunk')}"


def other_chunks(trace: Trace, choice: Choice) -> str:
    """Why the choice retrieves other chunks than the record holds; "" where it does not."""
    made = trace.settings
    if trace.logged is not None:  # the chunks of a log stay, whatever would be retrieved here
        return ""
    if (choice.pinned, choice.search_too) != (made.pinned, made.search_too):
        return "other pinned files"
    if choice.collection != made.collection:
        return "another collection"
    return "" if choice.top_k == made.top_k else f"{counted(choice.top_k, 'chunk')} instead of {made.top_k}"


def cost(offered: Offer) -> str:
    calls = f"{'about ' if offered.calls else ''}{model_calls(offered.calls)}"
    searches = ", 1 web search" if offered.searches else ""
    return f"{calls}{searches}{', and 1 a sentence to check it' if offered.judges else ''}"
