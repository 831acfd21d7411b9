"""The model calls that a question will cost, before it is asked or resumed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision.policy import ContextJudge, Doubtful, Policy, WebQuery
from crag_core.pipeline.page_stages import CHUNKS_OF_A_PAGE
from crag_core.trace.reroute import Missing

JUDGING = "and one a sentence of the answer that is no quotation"
"""What it costs beside where a model judges the answer: nobody knows how many sentences it will have."""


@dataclass(frozen=True)
class Calls:
    """Model calls from `least` to `most`, if no reply must be asked for twice."""

    least: int
    most: int

    def __str__(self) -> str:
        return str(self.most) if self.least == self.most else f"{self.least}–{self.most}"


def budget(
    policy: Policy,
    judge: EvaluatorCard,
    passages: int,
    *,
    writer: bool,
    searches: bool,
    condenses: bool = False,
) -> dict[Action, Calls]:
    """The calls of a whole run that ends with each action, for `passages` retrieved at a time.

    `writer`: a language model is there to rewrite, extract and answer. `searches`: the web may be asked, and is taken
    to find something. `condenses`: the writer may be asked first what a question of a conversation means.
    A policy that retrieves again counts later rounds from none that brings new passages to all.
    """
    calls = {action: _calls(policy, action, judge, passages, writer, searches) for action in Action}
    if condenses and writer:
        calls = {action: replace(one, most=one.most + 1) for action, one in calls.items()}
    return calls


def calls_needed(
    missing: tuple[Missing, ...],
    policy: Policy,
    passages: int,
    judge: EvaluatorCard,
    *,
    writer: bool,
    ungraded: int = 0,
) -> int:
    """Model calls to supply what is missing from a recorded run, one more round of retrieval at most.

    `ungraded`: so many of the passages are to be graded; 0: all.
    """
    costs = {
        Missing.GRADES: grading_calls(judge, ungraded or min(passages, policy.top or passages)),
        Missing.QUESTION_CLASS: int(writer),
        Missing.SUFFICIENCY: int(writer),
        Missing.CONSOLIDATION: max(map(_consolidating, policy.routes.values())) * writer,
        Missing.EXTRACTION: passages * writer,
        Missing.WEB: web_calls(policy, judge, writer=writer),
        Missing.PAGES: grading_calls(judge, policy.web.pages * CHUNKS_OF_A_PAGE) * policy.web.refine,
        Missing.RE_RETRIEVAL: writer + grading_calls(judge, passages),
        Missing.ANSWER: int(writer),
    }
    return sum(costs.get(item, 0) for item in missing)


def web_calls(policy: Policy, judge: EvaluatorCard, *, writer: bool) -> int:
    chunks = policy.web.pages * (CHUNKS_OF_A_PAGE - 1)  # beside the snippet that they take the place of
    writes = writer and policy.web.query is not WebQuery.QUESTION
    return writes + grading_calls(judge, policy.web.limit + chunks) * policy.web.refine


def _calls(policy: Policy, action: Action, judge: EvaluatorCard, passages: int, writer: bool, searches: bool) -> Calls:
    steps = policy.steps(action)
    graded = grading_calls(judge, min(passages, policy.top or passages))
    together = int(writer and policy.judges_together)  # of nothing, nobody is asked
    sorting = int(writer and policy.classifies)
    is_skipped = bool(policy.skip) and not policy.is_plain and action is Action.CORRECT
    surely_graded = 0 if judge.spares_calls else graded
    least = 0 if is_skipped else surely_graded + together * (action is not Action.INCORRECT)
    rounds = policy.max_rounds - 1 if policy.has("again") else 0
    most = graded + together + rounds * (graded + writer)
    extracting = passages * writer if "extract" in steps else 0
    unread = replace(policy, web=replace(policy.web, pages=0))  # where no page can be read
    web = web_calls(unread, judge, writer=writer) * searches
    pages = web_calls(policy, judge, writer=writer) * searches - web
    always, maybe = "web" in steps, "web_if_fewer" in steps or "web" in (steps.get("again") or ())[:rounds]
    can_be_empty = "discard" in steps and not {"keep_if_nothing", "again"} & steps.keys()
    may_find = searches and (always or maybe)
    answers = writer and (may_find or not can_be_empty)  # from nothing, nobody is asked to answer
    answers = answers and not (together and policy.context_judge is ContextJudge.ANSWER and action is Action.CORRECT)
    abstains = action is not Action.CORRECT and policy.doubtful is Doubtful.ABSTAIN  # unless the web brings something
    surely = answers and (not abstains or (searches and always))
    perhaps = answers and (not abstains or may_find)
    written = extracting + web * always
    most += written + perhaps + web * maybe + pages * (always or maybe)
    if consolidating := _consolidating(steps) * perhaps:  # of nothing, nobody is asked; it may leave nothing to answer
        written += consolidating * (surely and action is not Action.INCORRECT)
        most, surely = most + consolidating, False
    return Calls(sorting + least + written + surely, sorting + most)


def _consolidating(steps: Mapping[str, Any]) -> int:
    return 1 + bool(steps["consolidate"]) if "consolidate" in steps else 0


def grading_calls(judge: EvaluatorCard, passages: int) -> int:
    return math.ceil(passages / judge.batch) if judge.calls_model else 0
