"""Replays recorded rounds of retrieval: the decision of each, the last one, and the round that comes next. Pure."""

from dataclasses import dataclass, replace
from functools import partial

from crag_core.base.text.display import counted
from crag_core.base.types.decisions import CorrectionKind, Decision
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Extraction, Strip
from crag_core.base.types.passages import Passage, Round, Scores
from crag_core.decision.decide import decide
from crag_core.decision.fusion import fuse
from crag_core.decision.policy import Policy
from crag_core.decision.refine import left_after_refinement
from crag_core.decision.signals import UNSURE
from crag_core.decision.steps import EXPAND, REFINE, WIDENING


@dataclass(frozen=True)
class Iteration:
    path: tuple[str, ...]
    passages: tuple[Passage, ...]
    decision: Decision


@dataclass(frozen=True)
class DecisionPath:
    """The way of one question through a record.

    `evidence` is what the answer may use, in rank order. `ungraded` are passages that must be graded before the last
    decision means anything. `wanted` is the path of the next round, if one is asked for that the record does not hold.
    `not_made` says why a round that was asked for was not made; "": none was left out.
    """

    iterations: tuple[Iteration, ...]
    evidence: tuple[Passage, ...]
    ungraded: tuple[Passage, ...] = ()
    wanted: tuple[str, ...] | None = None
    not_made: str = ""

    @property
    def decision(self) -> Decision:
        return self.iterations[-1].decision

    @property
    def looked_at(self) -> tuple[Passage, ...]:
        found = [passage for iteration in self.iterations for passage in iteration.passages]
        return tuple({passage.id: passage for passage in (*found, *self.evidence)}.values())

    @property
    def kept(self) -> tuple[Passage, ...]:
        return _keep(self.decision, self.evidence)


def replay_rounds(
    policy: Policy,
    passages: tuple[Passage, ...],
    grades: tuple[Grade, ...] | None,
    signals: Scores = (),
    rounds: tuple[Round, ...] = (),
    strips: tuple[Strip, ...] | None = None,
    extractions: tuple[Extraction, ...] | None = None,
) -> DecisionPath:
    """Decide, and go on with the recorded round that the decision asks for, as long as there is one.

    A recorded round is used only where the same rounds led to it. The rounds "expand" and "documents" change the
    evidence and are not decided upon again (description 000, arXiv 2407.16881); every other round is (description 001).
    Where the last one found nothing, what those before it found is looked at again. `strips` and `extractions` settle
    whether the web is asked, where that depends on what refinement leaves.
    """
    known = {found.path: found for found in rounds}
    path: tuple[str, ...] = ()
    iterations: list[Iteration] = []
    while True:
        earlier = {passage.id: passage for iteration in iterations for passage in iteration.passages}
        look = partial(decide, policy, grades=grades, signals=signals, path=path, seen=earlier)
        decision, before = look(passages), ""
        if earlier and not passages and decision.next_round is None:
            passages = tuple(earlier.values())
            decision = look(passages)
            again = counted(len(passages), "chunk")
            before = f"iteration {len(path) + 1} found nothing, so {again} of those before it again: "
        if decision.is_from_memory:
            return DecisionPath((Iteration(path, (), decision),), ())
        ungraded = () if UNSURE in dict(signals) else _ungraded(policy, passages, grades, decision)
        following = None if ungraded else decision.next_round
        found = known.get((*path, following)) if following else None
        if found and found.retrievals and following not in WIDENING:
            iterations.append(Iteration(path, passages, _told(decision, before)))
            path, passages = found.path, gather(policy, decision, passages, found)
            continue
        not_made = found.query_by if found and not found.retrievals else ""
        if found and not found.retrievals:
            look = partial(look, is_last=True)
            decision = look(passages)
        evidence = gather(policy, decision, passages, found) if found and found.retrievals else passages
        if decision.web_below is not None:
            kept = _keep(decision, evidence)
            decision = look(passages, left=left_after_refinement(policy, decision.handling, kept, strips, extractions))
        after = f"; no more retrieval: {not_made}" if not_made else ""
        iterations.append(Iteration(path, passages, _told(decision, before, after)))
        wanted = (*path, following) if following and not found else None
        return DecisionPath(tuple(iterations), evidence, ungraded, wanted, not_made)


def _told(decision: Decision, before: str, after: str = "") -> Decision:
    return replace(decision, reason=f"{before}{decision.reason}{after}")


def gather(policy: Policy, decision: Decision, passages: tuple[Passage, ...], found: Round) -> tuple[Passage, ...]:
    """The evidence after a round: fused ("expand"), kept and new ("refine"), or only what was found or read then."""
    rankings = [retrieval.passages for retrieval in found.retrievals]
    if found.path[-1] == EXPAND:
        return fuse(rankings, policy.expansion.max_chunks, policy.refinement.budget)
    new = tuple(passage for ranking in rankings for passage in ranking)
    if found.path[-1] != REFINE:
        return new
    seen = {passage.id for passage in passages}
    return _keep(decision, passages) + tuple(passage for passage in new if passage.id not in seen)


def _keep(decision: Decision, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
    discarded = {one.passage_id for one in decision.plan if one.kind is CorrectionKind.DISCARD}
    return () if None in discarded else tuple(passage for passage in passages if passage.id not in discarded)


def _ungraded(
    policy: Policy, passages: tuple[Passage, ...], grades: tuple[Grade, ...] | None, decision: Decision
) -> tuple[Passage, ...]:
    if decision.rule or not policy.reads_grades:
        return ()
    graded = {grade.passage_id for grade in grades or ()}
    return tuple(passage for passage in passages[: policy.top] if passage.id not in graded)
