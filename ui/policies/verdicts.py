"""What each policy decides on one and the same set of scores, of a recorded run or made up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crag_core.base.types.decisions import Decision
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Scores
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy
from crag_core.decision.reasons import SCORE_WORDS
from crag_core.evaluators.policies import known_card, suit
from crag_core.pipeline.call_budget import Calls, budget
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from crag_core.view.score_words import CALLED


@dataclass(frozen=True)
class Verdict:
    """What one policy decides on the grades of `judge`; `needs`: what a recorded run lacks to carry it out."""

    policy: Policy
    decision: Decision
    judge: EvaluatorCard
    passages: int
    grades: tuple[Grade, ...] = ()
    needs: tuple[str, ...] | None = None

    @property
    def calls(self) -> Calls:
        """With a language model that rewrites and answers."""
        found = budget(self.policy, self.judge, self.passages, writer=True, searches=True)
        return found[self.decision.action]


@dataclass(frozen=True)
class Scale:
    """A score between 0 and 1 with the thresholds that it is compared with, None where there is no such threshold.

    `chunks`: the scores of the chunks that it was made from, () where it was made from something else.
    """

    name: str
    score: float
    lower: float | None
    upper: float | None
    chunks: tuple[float, ...] = ()


def scales(verdict: Verdict) -> tuple[Scale, ...]:
    """One, or two where two signals decided; none where nothing was compared: the reason tells why."""
    policy, decision = verdict.policy, verdict.decision
    if decision.score is None or decision.rule:
        return ()
    if decision.topical is not None:
        answering, topical = (_parts(verdict.grades, name) for name in (ANSWERING, TOPICAL))
        return (
            Scale(CALLED[ANSWERING], decision.score, None, policy.upper, answering),
            Scale(CALLED[TOPICAL], decision.topical, policy.lower, None, topical),
        )
    read = () if policy.scores_the_set else tuple(one.score for one in verdict.grades)
    chunks = tuple(score for score in read if score is not None)
    lower = policy.lower if policy.lower <= policy.upper else None  # above upper it decides nothing
    return (Scale(SCORE_WORDS[policy.score].short, decision.score, lower, policy.upper, chunks),)


def judge_run(trace: Trace, policies: Iterable[Policy]) -> list[Verdict]:
    """Every policy with its starting thresholds for the evaluator that graded the run."""
    verdicts = []
    judge, grades = trace.settings.evaluator, trace.grades or ()
    for policy in policies:
        suited = policy.with_thresholds_for(judge, trace.settings.strip_evaluator)
        routed = reroute(trace, suited)
        needs = tuple(item.value.partition(":")[0] for item in routed.missing if item is not Missing.ANSWER)
        verdicts.append(Verdict(trace.decided_by(suited), routed.decision, judge, trace.settings.top_k, grades, needs))
    return verdicts


def judge_scores(
    passages: tuple[Passage, ...], grades: tuple[Grade, ...], signals: Scores, policies: Iterable[Policy]
) -> list[Verdict]:
    """Every policy with the evaluator and thresholds of its description, on made-up scores."""
    return [
        Verdict(policy, decide(policy, passages, grades, signals), known_card(policy.evaluator), len(passages), grades)
        for policy in (suit(one, one.evaluator) for one in policies)
    ]


def _parts(grades: Iterable[Grade], name: str) -> tuple[float, ...]:
    found = (one.part(name) for one in grades)
    return tuple(score for score in found if score is not None)
