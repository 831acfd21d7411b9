"""What each policy decides on one and the same set of scores, of a recorded run or made up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crag_core.base.types.decisions import Decision
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage, Scores
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy
from crag_core.evaluators.policies import known_card, suit
from crag_core.pipeline.call_budget import Calls, budget
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace


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
