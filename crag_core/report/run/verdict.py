"""The verdict of a report: the action, its reason in numbers, how far it is from flipping, and how it was taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from crag_core.base.text.display import counted, duration, sentence
from crag_core.base.types import Edits
from crag_core.trace.injection_scan import remark
from crag_core.trace.opinions import judged_by
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from crag_core.view.evidence_diff import difference
from crag_core.view.run_view import RunView
from crag_core.view.verdict_lines import (
    Figure,
    changes,
    figures,
    flip_lines,
    headline,
    meaning,
    no_flip,
    notes,
    own_name,
)


@dataclass(frozen=True)
class Verdict:
    """`tone` names the colour; `label` is the policy's own name for the action, where it has one."""

    tone: str
    action: str
    label: str
    meaning: str
    reason: str
    figures: tuple[Figure, ...]
    flips: tuple[str, ...]
    notes: tuple[str, ...]


def verdict_of(view: RunView) -> Verdict:
    decision = view.routed.decision
    if not view.is_decided:
        return Verdict("open", "NOT DECIDED", "", _why_open(view.trace), "", _costs(view.trace), (), ())
    suspicious = remark(view.trace)
    return Verdict(
        tone=decision.action.lower(),
        action=decision.action,
        label=own_name(decision),
        meaning=meaning(decision),
        reason=sentence(decision.reason),
        figures=(*figures(view), *_costs(view.trace)),
        flips=flip_lines(view) or (no_flip(view),),
        notes=(*notes(view), *([f"{suspicious}."] if suspicious else [])),
    )


def _why_open(trace: Trace) -> str:
    where = f" at the step “{trace.failure.name}”" if trace.failure else ""
    after = "the chunks were graded" if trace.passages is not None else "anything was retrieved"
    return f"The run ended{where} before {after}."


def _costs(trace: Trace) -> tuple[Figure, ...]:
    made = trace.usage
    tokens = counted(made.prompt_tokens + made.completion_tokens, "token")
    calls = Figure("Model calls", str(made.calls), tokens if made.calls else "no language model was asked")
    return calls, Figure("Time", duration(trace.seconds), "of the run as taken")


# --- what differs from the run as taken -----------------------------------------------------------------------------


def changes_of(view: RunView) -> tuple[str, ...]:
    """What was changed since the run was taken, and what that does; () when nothing was."""
    before, own = _as_taken(view.trace), view.trace.settings.policy
    found = [sentence(one) for one in changes(before, view.trace, view.policy)]
    if view.policy != own and (view.policy.name, view.policy.thresholds) == (own.name, own.thresholds):
        found.append("The policy has other rules than at the time of the run.")
    return (*found, *_outcome(view, before)) if found else ()


def _as_taken(trace: Trace) -> Trace:
    """The record without edits, by the evaluator whose grades give the decision that was taken."""
    plain = replace(trace, edits=Edits())
    others = (judged_by(plain, opinion.evaluator.name, opinion.writer) for opinion in trace.opinions)
    for one in (plain, *others):
        if one and trace.decision and reroute(one, one.settings.policy).decision.decides_like(trace.decision):
            return one
    return plain


def _outcome(view: RunView, before: Trace) -> Iterator[str]:
    if not view.is_decided:
        return
    then, now = reroute(before, view.trace.settings.policy), view.routed
    yield f"The run as taken was {headline(then.decision)}: {then.decision.reason}."
    found = difference(then, now)
    counts = ", ".join(f"{count} {what}" for what, count in found.counts)
    order = ", in another order" if found.reordered else ""
    yield f"Of the evidence: {counts}{order}. It was decided again from the record; no model was called."
