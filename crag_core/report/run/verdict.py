"""The verdict of a report: the action, its reason in numbers, how far it is from flipping, and how it was taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crag_core.base.text.display import counted, sentence
from crag_core.base.text.numbers import readable
from crag_core.base.types import ANSWERING, TOPICAL, Action, Decision
from crag_core.decision.stability import Stability, flips, stability
from crag_core.report.reported_run import Shown, name_of
from crag_core.report.text import duration
from crag_core.trace.injection_scan import remark
from crag_core.trace.trace import Trace
from crag_core.view.evidence_diff import difference

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


def verdict_of(shown: Shown) -> Verdict:
    decision = shown.routed.decision
    if not shown.is_decided:
        return Verdict("open", "NOT DECIDED", "", _why_open(shown.trace), "", _costs(shown.trace), (), ())
    near = flips(stability_of(shown), shown.policy)
    return Verdict(
        tone=decision.action.lower(),
        action=decision.action,
        label=_own_name(decision),
        meaning=_UNKNOWN
        if decision.action is Action.AMBIGUOUS and decision.score is None
        else MEANINGS[decision.action],
        reason=sentence(decision.reason),
        figures=(*_scores(shown), _kept(shown), *_costs(shown.trace)),
        flips=tuple(f"{flip.sentence} ({flip.distance:.2f} away)" for flip in near) or (_FIXED,),
        notes=(*shown.routed.knowledge.notes, *([f"{message}."] if (message := remark(shown.trace)) else [])),
    )


def stability_of(shown: Shown) -> Stability:
    record = shown.changed
    return stability(shown.policy, record.passages or (), record.grades, record.signals, record.rounds)


def headline(decision: Decision) -> str:
    own = _own_name(decision)
    return f"{decision.action} ({own})" if own else str(decision.action)


def _own_name(decision: Decision) -> str:
    return "" if decision.label.upper() == decision.action else decision.label


def _why_open(trace: Trace) -> str:
    where = f" at the step “{trace.failure.name}”" if trace.failure else ""
    after = "the passages were graded" if trace.passages is not None else "anything was retrieved"
    return f"The run ended{where} before {after}."


def _scores(shown: Shown) -> Iterator[Figure]:
    """What was compared with the thresholds."""
    decision, policy = shown.routed.decision, shown.policy
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


def _kept(shown: Shown) -> Figure:
    verdicts = shown.routed.knowledge.verdicts
    excerpts = shown.routed.knowledge.excerpts
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


def changes(shown: Shown) -> tuple[str, ...]:
    """What was changed since the run was taken, and what that does; () when nothing was."""
    found = [*_other_policy(shown), *_other_judge(shown), *_edits(shown)]
    return (*found, *_outcome(shown)) if found else ()


def _other_policy(shown: Shown) -> Iterator[str]:
    own, policy = shown.trace.settings.policy, shown.policy
    if policy.name != own.name:
        yield f"The policy is {policy.title} instead of {own.title}."
    names = ("Lower", "Upper", "The cut-off for sentences")
    for name, now, then in zip(names, policy.thresholds, own.thresholds, strict=True):
        if now != then:
            new, old = readable(now, then)
            yield f"{name} is {new} instead of {old}."
    if policy != own and policy.name == own.name and policy.thresholds == own.thresholds:
        yield "The policy has other rules than at the time of the run."


def _other_judge(shown: Shown) -> Iterator[str]:
    now, then = shown.trace.settings.evaluator, shown.before.settings.evaluator
    if now != then:
        yield f"The grades are those of {now.title} instead of {then.title}."


def _edits(shown: Shown) -> Iterator[str]:
    edits = shown.trace.edits
    names = {passage.id: name_of(passage) for passage in (*shown.trace.all_passages, *shown.web_passages)}
    for ids, done in (
        (edits.dropped, "dropped by hand, as if never found"),
        (edits.pinned, "pinned by hand, as if graded 1.00"),
    ):
        message = ", ".join(f"{shown.numbers[id_]} ({names[id_]})" for id_ in ids if id_ in names)
        if message:
            yield f"{counted(len(ids), 'passage')} {done}: {message}."


def _outcome(shown: Shown) -> Iterator[str]:
    if not shown.is_decided:
        return
    then, now = shown.taken, shown.routed
    yield f"The run as taken was {headline(then.decision)}: {then.decision.reason}."
    yield f"What that does: {difference(then, now).summary}. It was decided again from the record; no model was called."
