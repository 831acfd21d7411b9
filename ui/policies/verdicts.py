"""What each policy decides on the scores of one recorded run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crag_core.base.types.decisions import Decision
from crag_core.decision.policy import Policy
from crag_core.pipeline.call_budget import Calls, budget
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace


@dataclass(frozen=True)
class Verdict:
    """What one policy decides on the grades of a run; `needs`: what the run lacks to carry it out."""

    policy: Policy
    decision: Decision
    calls: Calls
    """With a language model that rewrites and answers."""
    needs: tuple[str, ...]


def judge_run(trace: Trace, policies: Iterable[Policy]) -> list[Verdict]:
    """Every policy with its starting thresholds for the evaluator that graded the run."""
    verdicts, made = [], trace.settings
    for policy in policies:
        suited = policy.with_thresholds_for(made.evaluator, made.strip_evaluator)
        routed = reroute(trace, suited)
        needs = tuple(item.value.partition(":")[0] for item in routed.missing if item is not Missing.ANSWER)
        decided = trace.decided_by(suited)
        calls = budget(decided, made.evaluator, made.top_k, writer=True, searches=True)[routed.decision.action]
        verdicts.append(Verdict(decided, routed.decision, calls, needs))
    return verdicts
