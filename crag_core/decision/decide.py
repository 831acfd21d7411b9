"""The decision of a run: what was recorded as evidence for `crag.decide`, and its outcome with reasons in numbers."""

from collections.abc import Collection, Iterator
from math import inf
from statistics import fmean

from crag_core.base.text.display import counted
from crag_core.base.types.decisions import ALWAYS, NO_RETRIEVAL, Action, Decision, Handling
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Scores
from crag_core.decision import crag
from crag_core.decision.crag import Chunk, Evidence, Plan, Scored
from crag_core.decision.policy import Policy
from crag_core.decision.reasons import corrections, reason
from crag_core.decision.signals import REPEATED, RERANK, UNSURE


def evidence_of(
    policy: Policy,
    passages: tuple[Passage, ...],
    grades: tuple[Grade, ...] | None,
    signals: Scores = (),
    path: tuple[str, ...] = (),
    seen: Collection[str] = (),
    left: int | None = None,
    is_last: bool = False,
) -> Evidence:
    by_id = {grade.passage_id: grade for grade in grades or ()}
    for id_ in (aside := set_aside(policy, passages, grades)):
        del by_id[id_]
    judged = [by_id.get(passage.id) for passage in passages[: policy.top]]
    is_two = policy.compares_two_scores and any(grade and grade.two_signals for grade in judged)
    chunks = [_chunk(passage, by_id.get(passage.id), policy.compares_two_scores, is_two) for passage in passages]
    best = sorted(crag.counted(policy, tuple(chunks[: policy.top])).values())[-3:]
    rerank = {RERANK: round(fmean(best), 9)} if best else {}
    return Evidence(
        tuple(chunk._replace(is_aside=chunk.id in aside) for chunk in chunks) if aside else tuple(chunks),
        {name: min(max(value, 0.0), 1.0) for name, value in signals} | rerank,
        path,
        is_reread=any(passage.id in seen for passage in passages),
        left=inf if left is None else left,
        is_last=is_last,
    )


def set_aside(policy: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None) -> frozenset[str]:
    """The passages that are graded on the coarse scale beside others on the fine one: the two cannot be compared."""
    if not policy.reads_grades:
        return frozenset()
    ids = {passage.id for passage in passages}
    scored = (grade for grade in grades or () if grade.passage_id in ids and grade.score is not None)
    scales = {grade.passage_id: grade.coarse for grade in scored}
    return frozenset(id_ for id_, coarse in scales.items() if coarse) if False in scales.values() else frozenset()


def _chunk(passage: Passage, grade: Grade | None, reads_answering: bool, reads_topical: bool) -> Chunk:
    graded = grade or Grade(passage.id, None)
    return Chunk(
        passage.id,
        graded.part(ANSWERING) if reads_answering else graded.score,
        graded.part(TOPICAL) if reads_topical else None,
        passage.score("cosine") if "dense" in passage.found_by else None,
        pinned="read_file" in passage.found_by,
        tried=grade is not None,
    )


def decide(
    policy: Policy,
    passages: tuple[Passage, ...],
    grades: tuple[Grade, ...] | None,
    signals: Scores = (),
    path: tuple[str, ...] = (),
    seen: Collection[str] = (),
    left: int | None = None,
    is_last: bool = False,
) -> Decision:
    """Route one question.

    `passages` in rank order; `grades` in any order, None when grading was never done; `signals` are the set-level
    measures of `decision.signals`; `path` names the rounds of retrieval after the first that led here, `seen` the
    passages that were looked at on the way: no rule approves those unread. `left`: of how many passages refinement
    leaves something, None: not known yet; `is_last`: nothing more is to be retrieved. The same arguments always give
    the same decision.
    """
    evidence = evidence_of(policy, passages, grades, signals, path, seen, left, is_last)
    action, scored, plan = judge(policy, evidence)
    if scored.why == NO_RETRIEVAL:
        evidence = evidence._replace(chunks=())
    is_plain = policy.is_plain and not passages  # no rule speaks of nothing, and nothing was judged either
    by_score = crag.compare(policy, scored)
    deciding = scored.by if by_score is not Action.CORRECT or scored.topical is None else scored.by[:1]
    why = [reason(policy, evidence, by_score, scored, is_graded=grades is not None)]
    if scored.why in ("score", "none kept") and policy.reads_grades:
        why += _cautions(grades or (), deciding, sum(chunk.is_aside for chunk in evidence.chunks))
    repeated = "" if action is by_score else ", but the best sentence is about what was asked before"
    return Decision(
        action=action,
        label="No retrieval" if scored.why == NO_RETRIEVAL else policy.label(action),
        score=scored.score,
        reason="; ".join(why) + repeated,
        plan=corrections(policy, evidence, action, scored, plan),
        deciding=deciding,
        rule=scored.why if scored.why in crag.SKIP else ALWAYS if is_plain else None,
        handling=Handling(plan.chunks),
        next_round=plan.again,
        topical=scored.topical,
        web_below=plan.web_below,
    )


def judge(policy: Policy, evidence: Evidence) -> tuple[Action, Scored, Plan]:
    """The decision, but none for two questions of a conversation, nor CORRECT by a sentence about the one before."""
    if UNSURE in evidence.signals:
        action = Action.AMBIGUOUS if evidence.chunks else Action.INCORRECT
        scored = Scored(UNSURE, settled=action, is_known=False)
        return action, scored, crag.plan(policy, action, scored, evidence)
    action, scored, plan = crag.decide(policy, evidence)
    if action is Action.CORRECT and REPEATED in evidence.signals and scored.why not in (NO_RETRIEVAL, ALWAYS):
        action, evidence = Action.AMBIGUOUS, evidence._replace(is_last=True)
        plan = crag.plan(policy, action, scored, evidence)
    return action, scored, plan


def _cautions(grades: tuple[Grade, ...], deciding: Collection[str], aside: int) -> Iterator[str]:
    yield from dict.fromkeys(grade.caution for grade in grades if grade.caution and grade.passage_id in deciding)
    if aside:
        yield f"{counted(aside, 'chunk')} with a coarse grade set aside"


def chunk_action(policy: Policy, passage: Passage, grade: Grade | None, aside: Collection[str] = ()) -> Action | None:
    """The action that this chunk's own score stands for (description 004); None where none of its scores counts.

    None too where the policy compares no single chunk with its thresholds. `aside`: ids of `set_aside`.
    """
    if policy.score not in ("best", "worst", "two_signals") or policy.is_plain or grade is None or passage.id in aside:
        return None
    seen = evidence_of(policy, (passage,), (grade,)).chunks
    score = crag.counted(policy, seen).get(passage.id)
    topical = crag.counted(policy, seen, TOPICAL).get(passage.id) if policy.score == "two_signals" else None
    return None if score is None else crag.compare(policy, Scored("score", score, topical))
