"""The path of a run: every stage, taken or not, with result, cost or the reason why not. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from crag_core.base.text.display import clean, counted
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.steps import StepState
from crag_core.base.types.web import WebOutcome
from crag_core.trace.consolidation import in_brief
from crag_core.trace.edits import edited
from crag_core.trace.grounding.citation_check import WORDS, short_sum
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.reroute import Missing, Reroute
from crag_core.trace.summary import UNTIL_DECIDED
from crag_core.trace.trace import Trace, context_ids
from crag_core.view.path import stages
from crag_core.view.path.stages import BROKEN, PLACES, Stage, StageState, break_at, stage
from crag_core.view.run_view import model_name

RunPath = dict[str, Stage]
"""Every stage by its id, in order; "check" is among them only where the record holds what supports the answer."""

_SURE = ("retrieve", "grade", "route")
_IDLE = (StageState.NOT_TAKEN, StageState.SKIPPED, StageState.WOULD_BE, StageState.TO_COME)


def run_path(trace: Trace, routed: Reroute, running: str | None = None) -> RunPath:
    """The path that `routed` takes through the record, with the costs that the record holds.

    `running` names the step of the pipeline that goes on now; then what is missing is still to come.
    """
    dropped = {passage.id for passage in trace.all_passages} & set(trace.edits.dropped)
    trace = edited(trace)
    is_decided = _is_decided(trace, routed, running)
    drafts = [_draft(name, trace, routed, running, is_decided) for name in _DRAFTS]
    if dropped:
        drafts[0] = replace(drafts[0], detail=f"{counted(len(dropped), 'chunk')} left out by you")
    if trace.follow_up and trace.follow_up.is_changed:
        understood = f"understood as “{clean(trace.question)}”, {clean(trace.follow_up.by)}"
        drafts[0] = replace(drafts[0], detail="; ".join(filter(None, (drafts[0].detail, understood))))
    if trace.support is not None:
        drafts.append(_check(trace, routed))
    return {one.id: _with_cost(_settled(one, trace, running), trace, routed) for one in drafts}


def _is_decided(trace: Trace, routed: Reroute, running: str | None) -> bool:
    """Whether all is there that the decision is made from, and nothing that goes on may change it."""
    if trace.passages is None or Missing.CHUNKS in routed.missing:
        return False
    if stages.grade(trace, routed).state is StageState.WOULD_BE:
        return False
    return running is None or (trace.decision is not None and running not in UNTIL_DECIDED)


def _draft(name: str, trace: Trace, routed: Reroute, running: str | None, is_decided: bool) -> Stage:
    """The stage as the record alone has it; what depends on a decision that does not stand is not known."""
    is_early = name in ("retrieve", "grade") or (name == "again" and bool(trace.rounds))
    if is_decided or (is_early and trace.passages is not None):
        return _DRAFTS[name](trace, routed)
    if name in _SURE or running is not None:
        return stage(name, StageState.WOULD_BE)
    return stage(name, StageState.NOT_TAKEN, "not reached" if trace.failure else "not decided yet")


def _settled(draft: Stage, trace: Trace, running: str | None) -> Stage:
    """The draft with what goes on now, with what broke off, and with why it was not carried out."""
    if draft.state not in (StageState.TAKEN, StageState.WOULD_BE):
        return draft
    if running in PLACES[draft.id][2]:
        return replace(draft, state=StageState.RUNNING, headline="now")
    if draft.state is StageState.TAKEN:
        return draft
    if running is not None:
        return replace(draft, state=StageState.TO_COME, headline="to come")
    if broken := break_at(trace, draft.id):
        return replace(draft, state=BROKEN[broken.state], headline=broken.summary, detail=broken.hint)
    return replace(draft, headline=draft.headline or _why_undone(trace))


def _why_undone(trace: Trace) -> str:
    if trace.failure:
        return "not reached"
    is_waiting = trace.web is not None and trace.web.is_waiting
    return "after your approval" if is_waiting and trace.context is None else "not in this record"


def _with_cost(draft: Stage, trace: Trace, routed: Reroute) -> Stage:
    names = PLACES[draft.id][2]
    made = [step for step in trace.steps if step.name in names and step.state is not StepState.SKIPPED]
    is_again = draft.id == "assemble" and not _is_assembled(trace, routed)
    if draft.state in _IDLE or not made or is_again:
        return draft
    return replace(draft, calls=sum(step.usage.calls for step in made), seconds=trace.seconds_of(names))


def _assemble(trace: Trace, routed: Reroute) -> Stage:
    if routed.decision.is_from_memory:
        return stage("assemble", StageState.SKIPPED, stages.why_not(routed))
    missing = set(routed.missing) - {Missing.ANSWER}
    if trace.web is not None and trace.web.outcome is WebOutcome.COOLING:
        missing -= {Missing.WEB}  # the run went on without it
    if trace.context is None or (missing and routed.answer is None):
        return stage("assemble", StageState.WOULD_BE)
    if found := routed.knowledge.consolidation:
        said = f"by {model_name(trace.settings.writer)}: {in_brief(found)}"
        text = f"{counted(len(routed.knowledge.excerpts), 'excerpt')} {'and memory' if found.most else 'compared'}"
        return replace(stage("assemble", StageState.TAKEN, text, said), title="Consolidate")
    own, other = len(routed.knowledge.internal), len(routed.knowledge.external)
    text = counted(own, "excerpt") if own else ""
    if other:
        text = f"{text} + {other} from the web" if own else f"{counted(other, 'excerpt')} from the web"
    detail = "" if _is_assembled(trace, routed) else "put together again from the record"
    return stage("assemble", StageState.TAKEN, text or "nothing is left", detail)


def _is_assembled(trace: Trace, routed: Reroute) -> bool:
    """Whether the run put together just this; anything else is made from the record while it is shown."""
    return context_ids(routed.knowledge.excerpts) == trace.context


def _answer(trace: Trace, routed: Reroute) -> Stage:
    answer = routed.answer
    if answer is None:
        return stage("answer", StageState.WOULD_BE)
    by = "quoted" if answer.writer == EXTRACTIVE else f"by {answer.writer}"
    by = {AnswerEnding.DOUBTFUL: "doubtful, ", AnswerEnding.FROM_MEMORY: "from memory, "}.get(routed.ending, "") + by
    return {
        AnswerState.COMPLETE: stage("answer", StageState.TAKEN, by),
        AnswerState.CUT: stage("answer", StageState.STOPPED, "cut short", answer.message),
        AnswerState.STOPPED: stage("answer", StageState.STOPPED, "stopped", answer.message),
        AnswerState.FAILED: stage("answer", StageState.FAILED, "broke off", answer.message),
        AnswerState.CANNOT_ANSWER: stage("answer", StageState.TAKEN, "not answered by this evidence", answer.message),
    }[answer.state]


def _check(trace: Trace, routed: Reroute) -> Stage:
    support = trace.support or ()
    if routed.answer is None:
        return stage("check", StageState.WOULD_BE)
    if routed.answer.writer == EXTRACTIVE:
        return stage("check", StageState.SKIPPED, "quoted: nothing to check")
    text = short_sum(support, trace.settings.support)
    unchecked = sum(one.score is None for one in support)
    missed = [f"{unchecked} could not be checked"] if unchecked else []
    judged = [f"judged by {trace.settings.support}"] if trace.settings.support != WORDS else []
    return stage("check", StageState.TAKEN, text, "; ".join(missed + judged))


_DRAFTS: dict[str, Callable[[Trace, Reroute], Stage]] = {
    "retrieve": stages.retrieve,
    "grade": stages.grade,
    "route": stages.route,
    "again": stages.again,
    "refine": stages.refine,
    "rewrite": partial(stages.web_stage, "rewrite"),
    "search": partial(stages.web_stage, "search"),
    "grade_web": partial(stages.web_stage, "grade_web"),
    "assemble": _assemble,
    "answer": _answer,
}
