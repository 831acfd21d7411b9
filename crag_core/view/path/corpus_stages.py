"""The stages on the documents as view data: retrieve, grade, route, retrieve again, refine. Pure."""

from __future__ import annotations

from dataclasses import replace

from crag_core.base.text.display import counted
from crag_core.base.text.numbers import readable
from crag_core.base.types import Handling, StepName
from crag_core.decision.plan import EXPAND, REFINE
from crag_core.decision.policy import Strategy
from crag_core.trace.reroute import Missing, Reroute
from crag_core.trace.trace import Trace
from crag_core.view.path.stage import Stage, StageState, break_at, is_skipped, kept, stage, why_not

_HANDLINGS = {Handling.WHOLE: "Use whole", Handling.EXTRACT: "Extract", Handling.DISCARD: "Discard"}
_ROUNDS = {
    EXPAND: "the question expanded",
    REFINE: "keywords refined",
    Strategy.KEYWORD.value: "by keywords",
    Strategy.REWRITTEN.value: "the question in other words",
    Strategy.EXPANDED.value: "the question expanded",
}


def retrieve(trace: Trace, routed: Reroute) -> Stage:
    found = routed.decision_path.iterations[0].passages
    pinned = sum("read_file" in passage.found_by for passage in found)
    files, rest = counted(pinned, "pinned file"), counted(len(found) - pinned, "chunk")
    if pinned:
        message = f"{files}, {rest}" if len(found) > pinned else f"{files}, whole"
    else:
        message = f"{rest} from {counted(len({passage.source for passage in found}), 'document')}"
    return stage("retrieve", StageState.TAKEN, message if found else "nothing found")


def grade(trace: Trace, routed: Reroute) -> Stage:
    decision_path = routed.decision_path
    first = decision_path.iterations[0].decision
    if first.rule:
        return stage("grade", StageState.SKIPPED, f"not needed: rule {first.rule}", first.reason)
    ids = {passage.id for passage in decision_path.looked_at}
    grades = [grade for grade in trace.grades or () if grade.passage_id in ids]
    is_broken = break_at(trace, "grade") is not None and any(grade.retryable for grade in grades)
    if decision_path.ungraded or is_broken:
        return stage("grade", StageState.WOULD_BE)
    if not grades:
        return stage("grade", StageState.SKIPPED, "not read by this policy" if ids else "nothing to grade")
    scores = [grade.score for grade in grades if grade.score is not None]
    count = f"{len(scores)}" if len(scores) == len(grades) else f"{len(scores) or 'none'} of {len(grades)}"
    # Where two signals decide, the combined score is none of the numbers that the route tells.
    best = f", best {readable(max(scores))[0]}" if scores and routed.decision.topical is None else ""
    return stage("grade", StageState.TAKEN, f"{count} graded{best}", f"by {trace.settings.evaluator.title}")


def route(trace: Trace, routed: Reroute) -> Stage:
    decision = routed.decision
    message = decision.reason
    if decision.rule:
        message = f"by rule {decision.rule}"
    elif decision.score is not None and decision.topical is not None:
        message = "answering {}, topical {}".format(*readable(decision.score, decision.topical))
    elif decision.score is not None:
        message = f"overall {readable(decision.score)[0]}"
    own = decision.label.upper() != decision.action
    detail = f"{decision.label}: {decision.reason}" if own else decision.reason
    return replace(stage("route", StageState.TAKEN, message, detail), action=decision.action)


def again(trace: Trace, routed: Reroute) -> Stage:
    decision_path = routed.decision_path
    last = decision_path.iterations[-1]
    is_expanded = last.decision.next_round == EXPAND and not decision_path.ungraded and decision_path.wanted is None
    path = (*last.path, EXPAND) if is_expanded else last.path
    first = {passage.id for passage in decision_path.iterations[0].passages}
    new = sum(passage.id not in first for passage in decision_path.looked_at)
    made = f"{counted(len(path), 'more round')}, {new} new" if path else ""
    detail = ", then ".join(_ROUNDS.get(name, name) for name in decision_path.wanted or path)
    if decision_path.wanted is None:
        state = StageState.TAKEN if path else StageState.NOT_TAKEN
        return stage("again", state, made or why_not(routed), detail)
    if is_skipped(trace, StepName.RETRIEVE_AGAIN):
        return stage("again", StageState.SKIPPED, "only your pinned files", detail)
    return stage("again", StageState.WOULD_BE, f"{made}; the next not in this record" if made else "", detail)


def refine(trace: Trace, routed: Reroute) -> Stage:
    """What becomes of the retrieved passages, under the title of their handling."""
    decision_path, handling, knowledge = routed.decision_path, routed.decision.handling, routed.knowledge
    message = replace(
        stage("refine", StageState.TAKEN, detail=_set_aside(routed)),
        title=_HANDLINGS.get(handling, "Refine"),
        handling=handling,
        leads_on=bool(knowledge.internal),
    )
    if not decision_path.evidence:
        return replace(message, state=StageState.NOT_TAKEN, headline="no chunks")
    whole = sum(not excerpt.strip_ids for excerpt in knowledge.internal)
    if handling is Handling.DISCARD:
        count = counted(len(decision_path.evidence), "chunk")
        return replace(
            message, headline=f"{whole} of {count} used after all" if whole else f"{count} set aside", detail=""
        )
    if Missing.STRIPS in routed.missing:
        return replace(message, state=StageState.WOULD_BE)
    if handling is Handling.WHOLE or whole:
        return replace(message, headline=f"{counted(whole, 'chunk')} as {'it is' if whole == 1 else 'they are'}")
    count = kept(knowledge.verdicts, decision_path.evidence)
    if Missing.EXTRACTION not in routed.missing:
        return replace(message, headline=count)
    if is_skipped(trace, StepName.EXTRACT):
        return replace(message, headline=f"{count}, by score", detail="no language model to extract them")
    return replace(message, state=StageState.WOULD_BE)


def _set_aside(routed: Reroute) -> str:
    left = len(routed.decision_path.evidence) - len(routed.decision_path.kept)
    return f"{counted(left, 'chunk')} set aside first" if left else ""
