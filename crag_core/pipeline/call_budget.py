"""The model calls that a question will cost, before it is asked or resumed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from crag_core.base.types import Action, EvaluatorCard, Handling
from crag_core.decision.policy import Again, ContextJudge, Doubtful, Policy, Strategy, WebQuery, WebUse
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
        return str(self.most) if self.least == self.most else f"{self.least} to {self.most}"


def budget(
    policy: Policy,
    judge: EvaluatorCard,
    passages: int,
    *,
    writer: bool,
    searches: bool,
    second: EvaluatorCard | None = None,
    condenses: bool = False,
) -> dict[Action, Calls]:
    """The calls of a whole run that ends with each action, for `passages` retrieved at a time.

    `writer`: a language model is there to rewrite, extract and answer. `searches`: the web may be asked, and is taken
    to find something. `second`: the evaluator of `policy.second_opinion`, asked about every judged passage at most.
    `condenses`: the writer may be asked first what a question of a conversation means.
    A policy that retrieves again counts later rounds from none that brings new passages to all.
    """
    calls = {action: _calls(policy, action, judge, passages, writer, searches) for action in Action}
    if condenses and writer:
        calls = {action: replace(one, most=one.most + 1) for action, one in calls.items()}
    if second is None:
        return calls
    rounds = policy.loop.max_iterations if any(policy.route(one).re_retrieve for one in Action) else 1
    more = rounds * _second_reading(policy, second, passages)
    return {action: replace(one, most=one.most + more) for action, one in calls.items()}


def calls_needed(
    missing: tuple[Missing, ...],
    policy: Policy,
    passages: int,
    judge: EvaluatorCard,
    *,
    writer: bool,
    second: EvaluatorCard | None = None,
) -> int:
    """Model calls to supply what is missing from a recorded run, one more round of retrieval at most."""
    costs = {
        Missing.GRADES: _grading(judge, min(passages, policy.grade_top or passages)),
        Missing.QUESTION_CLASS: int(writer),
        Missing.SUFFICIENCY: int(writer),
        Missing.CONSOLIDATION: _consolidating(policy) * writer,
        Missing.SECOND_OPINION: _second_reading(policy, second, passages) if second else 0,
        Missing.EXTRACTION: passages * writer,
        Missing.WEB: web_calls(policy, judge, writer=writer),
        Missing.PAGES: _grading(judge, policy.web_pages * CHUNKS_OF_A_PAGE) * policy.refine_web,
        Missing.RE_RETRIEVAL: writer + _grading(judge, passages),
        Missing.ANSWER: int(writer),
    }
    return sum(costs.get(item, 0) for item in missing)


def web_calls(policy: Policy, judge: EvaluatorCard, *, writer: bool) -> int:
    """Model calls of one web search at most: the query, and the grades of what it finds."""
    chunks = policy.web_pages * (CHUNKS_OF_A_PAGE - 1)  # beside the snippet that they take the place of
    writes = writer and policy.web_query is not WebQuery.QUESTION
    return writes + _grading(judge, policy.web_limit + chunks) * policy.refine_web


def _calls(policy: Policy, action: Action, judge: EvaluatorCard, passages: int, writer: bool, searches: bool) -> Calls:
    route, rules = policy.route(action), policy.fast_path
    graded = _grading(judge, min(passages, policy.grade_top or passages))
    together = int(writer and policy.judges_together)  # of nothing, nobody is asked
    sorting = int(writer and policy.rounds_by_question)
    has_rules = rules.read_file or rules.few_context is not None or rules.high_vector_score is not None
    has_rules |= policy.rounds_by_question  # of the three classes, two are graded by nobody
    least = 0 if has_rules and action is Action.CORRECT else graded + together * (action is not Action.INCORRECT)
    rounds = policy.loop.max_iterations - 1 if any(policy.route(one).re_retrieve for one in Action) else 0
    most = graded + together + rounds * (graded + writer)
    extracting = passages * writer if route.passages is Handling.EXTRACT else 0
    web = web_calls(replace(policy, web_pages=0), judge, writer=writer) * searches  # where no page can be read
    pages = web_calls(policy, judge, writer=writer) * searches - web
    by_strategy = route.re_retrieve is Again.NEXT_STRATEGY and Strategy.WEB in policy.loop.strategies[:rounds]
    always, maybe = route.web is WebUse.ALWAYS, route.web is WebUse.WHEN_FEW or by_strategy
    can_be_empty = route.passages is Handling.DISCARD and not (route.keep_original_without_web or route.re_retrieve)
    may_find = searches and (always or maybe)
    answers = writer and (may_find or not can_be_empty)  # from nothing, nobody is asked to answer
    answers = answers and not (together and policy.context_judge is ContextJudge.ANSWER and action is Action.CORRECT)
    abstains = action is not Action.CORRECT and policy.doubtful is Doubtful.ABSTAIN  # unless the web brings something
    surely = answers and (not abstains or (searches and always))
    perhaps = answers and (not abstains or may_find)
    written = extracting + web * always
    most += written + perhaps + web * maybe + pages * (always or maybe)
    if consolidating := _consolidating(policy) * perhaps:  # of nothing, nobody is asked; it may leave nothing to answer
        written += consolidating * (surely and action is not Action.INCORRECT)
        most, surely = most + consolidating, False
    return Calls(sorting + least + written + surely, sorting + most)


def _consolidating(policy: Policy) -> int:
    """What the model knows itself, and what it makes of that and the evidence."""
    return int(policy.consolidate) + bool(policy.own_knowledge)


def _second_reading(policy: Policy, second: EvaluatorCard, passages: int) -> int:
    """Asked together at most `second.batch` at a time, of the passages that the policy judges."""
    return _grading(second, min(passages, policy.grade_top or passages))


def _grading(judge: EvaluatorCard, passages: int) -> int:
    return math.ceil(passages / judge.batch) if judge.calls_model else 0
