"""What carrying out a decision costs in model calls, before it is done."""

from __future__ import annotations

from crag_core.policy import Policy
from crag_core.reroute import Missing


def calls_needed(missing: tuple[Missing, ...], policy: Policy, passages: int, *, judge: bool, writer: bool) -> int:
    """Model calls to supply what is missing; a reply that cannot be read is asked for once more, on top.

    `judge`: the evaluator asks a model once a passage. `writer`: a language model is there to rewrite, extract and
    answer; without one those steps cost nothing. Web results count up to the policy's limit.
    """
    costs = {
        Missing.GRADES: min(passages, policy.grade_top or passages) * judge,
        Missing.EXTRACTION: passages * writer,
        Missing.WEB: writer + policy.web_limit * judge,
        Missing.ANSWER: int(writer),
    }
    return sum(costs.get(item, 0) for item in missing)
