"""The verdict of a report: the action, its reason in numbers, how far it is from flipping, and how it was taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from crag_core.base.text.display import counted, sentence
from crag_core.base.text.numbers import readable
from crag_core.base.types import ANSWERING, TOPICAL, Action, Decision, Edits
from crag_core.decision.stability import flips
from crag_core.report.text import duration
from crag_core.trace.injection_scan import remark
from crag_core.trace.opinions import judged_by
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from crag_core.view.evidence_diff import difference
from crag_core.view.run_view import RunView

MEANINGS = {
    Action.CORRECT: "The evidence holds up.",
    Action.AMBIGUOUS: "The evidence is on the subject, but may not be enough.",
    Action.INCORRECT: "The evidence does not fit the question.",
}
_UNKNOWN = "Nothing is known of the evidence."
_FIXED = "No single threshold can change this decision."


@dataclass(frozen=True)
class Figure:
    """One number with its name and what it is held against."""

    value: str
    name: str
    note: str = ""


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
    near = flips(view.stability, view.policy)
    return Verdict(
        tone=decision.action.lower(),
        action=decision.action,
        label=_own_name(decision),
        meaning=_UNKNOWN
        if decision.action is Action.AMBIGUOUS and decision.score is None
        else MEANINGS[decision.action],
        reason=sentence(decision.reason),
        figures=(*_scores(view), _kept(view), *_costs(view.trace)),
        flips=tuple(f"{flip.sentence} ({flip.distance:.2f} away)" for flip in near) or (_FIXED,),
        notes=(*view.routed.knowledge.notes, *([f"{message}."] if (message := remark(view.trace)) else [])),
    )


def headline(decision: Decision) -> str:
    own = _own_name(decision)
    return f"{decision.action} ({own})" if own else str(decision.action)


def _own_name(decision: Decision) -> str:
    return "" if decision.label.upper() == decision.action else decision.label


def _why_open(trace: Trace) -> str:
    where = f" at the step “{trace.failure.name}”" if trace.failure else ""
    after = "the passages were graded" if trace.passages is not None else "anything was retrieved"
    return f"The run ended{where} before {after}."


def _scores(view: RunView) -> Iterator[Figure]:
    """What was compared with the thresholds."""
    decision, policy = view.routed.decision, view.policy
    if decision.score is not None and decision.topical is not None:
        yield _against(f"best {ANSWERING} score", decision.score, "upper", policy.upper)
        yield _against(f"best {TOPICAL} score", decision.topical, "lower", policy.lower)
    elif decision.score is not None and decision.rule is None:
        value, low, high = readable(decision.score, policy.lower, policy.upper)
        yield Figure(value, "overall score", f"lower {low}, upper {high}")
    else:
        low, high = readable(policy.lower, policy.upper)
        yield Figure("–", "overall score", f"none was compared; lower {low}, upper {high}")


def _against(name: str, best: float, threshold_name: str, threshold: float) -> Figure:
    value, limit = readable(best, threshold)
    side = "below" if best < threshold else "above" if best > threshold else "at"
    return Figure(value, name, f"{side} {threshold_name} {limit}")


def _kept(view: RunView) -> Figure:
    verdicts = view.routed.knowledge.verdicts
    excerpts = view.routed.knowledge.excerpts
    if not verdicts:
        return Figure(str(len(excerpts)), "passages used", "no sentence was scored")
    kept = sum(verdict.kept for verdict in verdicts)
    return Figure(f"{kept} of {len(verdicts)}", "sentences kept", f"in {counted(len(excerpts), 'excerpt')}")


def _costs(trace: Trace) -> tuple[Figure, ...]:
    made = trace.usage
    tokens = made.prompt_tokens + made.completion_tokens
    return (
        Figure(
            str(made.calls), "model calls", counted(tokens, "token") if made.calls else "no language model was asked"
        ),
        Figure(duration(trace.seconds), "time", "of the run as taken"),
    )


# --- what differs from the run as taken -----------------------------------------------------------------------------


def changes(view: RunView) -> tuple[str, ...]:
    """What was changed since the run was taken, and what that does; () when nothing was."""
    before = _as_taken(view.trace)
    found = [*_other_policy(view), *_other_judge(view, before), *_edits(view)]
    return (*found, *_outcome(view, before)) if found else ()


def _as_taken(trace: Trace) -> Trace:
    """The record without edits, by the evaluator whose grades give the decision that was taken."""
    plain = replace(trace, edits=Edits())
    others = (judged_by(plain, opinion.evaluator.name, opinion.writer) for opinion in trace.opinions)
    for one in (plain, *others):
        if one and reroute(one, one.settings.policy).decision == trace.decision:
            return one
    return plain


def _other_policy(view: RunView) -> Iterator[str]:
    own, policy = view.trace.settings.policy, view.policy
    if policy.name != own.name:
        yield f"The policy is {policy.title} instead of {own.title}."
    names = ("Lower", "Upper", "The cut-off for sentences")
    for name, now, then in zip(names, policy.thresholds, own.thresholds, strict=True):
        if now != then:
            new, old = readable(now, then)
            yield f"{name} is {new} instead of {old}."
    if policy != own and policy.name == own.name and policy.thresholds == own.thresholds:
        yield "The policy has other rules than at the time of the run."


def _other_judge(view: RunView, before: Trace) -> Iterator[str]:
    now, then = view.trace.settings.evaluator, before.settings.evaluator
    if now != then:
        yield f"The grades are those of {now.title} instead of {then.title}."


def _edits(view: RunView) -> Iterator[str]:
    edits = view.trace.edits
    for ids, done in (
        (edits.dropped, "dropped by hand, as if never found"),
        (edits.pinned, "pinned by hand, as if graded 1.00"),
    ):
        message = ", ".join(f"{view.labels[id_].number} ({view.labels[id_].name})" for id_ in ids if id_ in view.labels)
        if message:
            yield f"{counted(len(ids), 'passage')} {done}: {message}."


def _outcome(view: RunView, before: Trace) -> Iterator[str]:
    if not view.is_decided:
        return
    then, now = reroute(before, view.trace.settings.policy), view.routed
    yield f"The run as taken was {headline(then.decision)}: {then.decision.reason}."
    yield f"What that does: {difference(then, now).summary}. It was decided again from the record; no model was called."
