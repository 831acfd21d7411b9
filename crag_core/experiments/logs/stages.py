"""The stage at which a question of a log went wrong, from its record, its graded run, and a policy. Pure.

With something that is known to be right a record is wrong or not, and the first stage that lost the right answer is
named. Without, chunks and scores can only make it doubtful.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from threading import Event

from crag_core.base.protocols import Piece, SupportMeter
from crag_core.base.types import ANSWERING, Action, Passage, Strip
from crag_core.decision.policy import Aggregation, Policy
from crag_core.experiments.logs.matching import Truth, declines
from crag_core.experiments.logs.record import LogRecord
from crag_core.trace.grounding.citation_check import SUPPORTED
from crag_core.trace.grounding.claims import sentences
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace


class Stage(StrEnum):
    """In the order of a run; the value is said to people as it stands."""

    NOT_RETRIEVED = "not retrieved"
    GRADED_LOW = "retrieved, graded low"
    STRUCK_OUT = "graded, struck out"
    NOT_USED = "kept, not used in the answer"
    BEYOND = "answered beyond the evidence"
    NONE = "no fault found"


class Verdict(StrEnum):
    """Of a record: by what is known to be right, or, where nothing is, by scores and support."""

    WRONG = "wrong"
    RIGHT = "right"
    DOUBTFUL = "doubtful"
    PLAUSIBLE = "nothing speaks against it"


@dataclass(frozen=True)
class Finding:
    """`reason` says why in numbers, `chunk` is the id of the chunk that it is about, "" for none. `action` is the route
    under the policy, None where nothing was graded."""

    record: str
    stage: Stage
    verdict: Verdict
    reason: str
    chunk: str = ""
    action: Action | None = None


NEAR = 0.35
"""The least share of the question that a supporting chunk must hold, to count as retrieved for it."""

MUCH_LESS = 0.5
"""An answer whose sentences score less than this share of the best kept one does not use what was kept."""


def find_stage(trace: Trace, record: LogRecord, policy: Policy, meter: SupportMeter) -> Finding:
    """Of a run over the record's chunks, all graded and all their sentences scored, under `policy`."""
    return _Case(trace, record, policy, meter).finding()


def counts(findings: Iterable[Finding]) -> dict[Stage, int]:
    """By stage, in their order, those that do not occur too."""
    found = list(findings)
    return {stage: sum(one.stage is stage for one in found) for stage in Stage}


class _Case:
    """One record under one policy."""

    def __init__(self, trace: Trace, record: LogRecord, policy: Policy, meter: SupportMeter) -> None:
        self.trace, self.record, self.policy, self.meter = trace, record, policy, meter
        self.routed: Reroute = reroute(trace, policy)
        self.truth = Truth(record, meter)
        self.passages = trace.passages or ()
        self.pieces = tuple(piece for piece in _pieces(trace))

    def finding(self) -> Finding:
        if self.record.references or self.truth.can_tell:
            return self._by_truth()
        return self._by_scores()

    # With something that is known to be right

    def _by_truth(self) -> Finding:
        is_right = self.truth.is_right(self.record.answer) if self.record.answer else None
        if is_right:
            return self._about_right()
        holding = [one for one in self.passages if self._holds(one)]
        if not holding and self.truth.can_tell:
            count = len(self.passages)
            told = f"none of the {count} chunks holds the right answer" if count else "nothing was found"
            return self._made(Stage.NOT_RETRIEVED, Verdict.WRONG, told)
        if not holding or (is_right is None and not self.record.answer):
            return self._without_answer(holding)
        lost = self._lost(holding)
        if lost is not None:
            return lost
        return self._about_answer(Verdict.WRONG, holding[0].id)

    def _about_right(self) -> Finding:
        """A right answer is no fault, unless it comes from nowhere in the evidence."""
        weakest = self._weakest()
        if weakest is not None and weakest[1] < SUPPORTED and not any(map(self._holds, self.passages)):
            reason = f"right, but no chunk says so: support {weakest[1]:.2f} for “{_short(weakest[0])}”"
            return self._made(Stage.BEYOND, Verdict.RIGHT, reason)
        return self._made(Stage.NONE, Verdict.RIGHT, "the answer says what is right")

    def _without_answer(self, holding: Sequence[Passage]) -> Finding:
        """Only retrieval, grades and sentences can be judged."""
        lost = self._lost(holding) if holding else None
        return lost or self._made(Stage.NONE, Verdict.PLAUSIBLE, "what was kept holds the right answer")

    def _lost(self, holding: Sequence[Passage]) -> Finding | None:
        """Where the policy loses every chunk that holds the answer, or the sentences of it that do."""
        decision = self.routed.decision
        kept = {one.id for one in self.routed.decision_path.kept}
        there = [one for one in holding if one.id in kept]
        if not there or decision.action is Action.INCORRECT:
            best = max(holding, key=lambda one: self._score(one) or 0.0)
            return self._made(
                Stage.GRADED_LOW, Verdict.WRONG, f"{_scored(self._score(best))}: {decision.reason}", best.id
            )
        texts = {one.passage.id: one.text for one in self.routed.knowledge.internal}
        left = [one for one in there if self._still_holds(one, texts.get(one.id, ""))]
        if left:
            return None
        strip = self._holding_strip(there)
        told = f"“{_short(strip.text)}” {_scored(strip.score)}" if strip else "its sentences were struck out"
        return self._made(Stage.STRUCK_OUT, Verdict.WRONG, told, there[0].id)

    def _holds(self, passage: Passage) -> bool:
        return self.truth.is_known(passage.text, passage.id) or self.truth.stands_in(passage.text)

    def _still_holds(self, passage: Passage, text: str) -> bool:
        """What is left of a chunk that held the answer."""
        if not text:
            return False
        return text == passage.text or not self.truth.spans or self.truth.stands_in(text)

    def _holding_strip(self, passages: Sequence[Passage]) -> Strip | None:
        ids = {one.id for one in passages}
        own = [one for one in self.trace.strips or () if one.passage_id in ids]
        return next((one for one in own if self.truth.stands_in(one.text)), None)

    def _about_answer(self, verdict: Verdict, chunk: str) -> Finding:
        """The evidence had it; the answer did not."""
        if declines(self.record.answer):
            return self._made(Stage.NOT_USED, verdict, "the answer says that there is none", chunk)
        weakest = self._weakest()
        if weakest is not None and weakest[1] < SUPPORTED:
            reason = f"support {weakest[1]:.2f} for “{_short(weakest[0])}”"
            return self._made(Stage.BEYOND, verdict, reason, chunk)
        return self._made(Stage.NOT_USED, verdict, "the answer says something else that stands in the chunks", chunk)

    # Without

    def _by_scores(self) -> Finding:
        decision, answer = self.routed.decision, self.record.answer
        is_good = decision.action is Action.CORRECT
        if not self.passages:
            return self._made(Stage.NOT_RETRIEVED, Verdict.DOUBTFUL, "nothing was found")
        if not answer:
            if is_good:
                return self._made(Stage.NONE, Verdict.PLAUSIBLE, decision.reason)
            return self._made(Stage.NOT_RETRIEVED, Verdict.DOUBTFUL, decision.reason)
        if declines(answer):
            stage = Stage.NOT_USED if is_good else Stage.NOT_RETRIEVED
            return self._made(stage, Verdict.DOUBTFUL, f"the answer says that there is none; {decision.reason}")
        weakest = self._weakest()
        if weakest is not None and weakest[1] < SUPPORTED:
            told = f"support {weakest[1]:.2f} for “{_short(weakest[0])}”"
            if decision.action is Action.INCORRECT:
                return self._made(Stage.NOT_RETRIEVED, Verdict.DOUBTFUL, f"{decision.reason}; {told}")
            return self._made(Stage.BEYOND, Verdict.DOUBTFUL, told)
        return self._by_support()

    def _by_support(self) -> Finding:
        """The answer stands in the chunks: did the policy keep what it stands on, and is that the best?"""
        decision = self.routed.decision
        behind = self._behind()
        if not behind:
            return self._made(Stage.NONE, Verdict.PLAUSIBLE, "the answer could not be compared with the chunks")
        own = {one.passage_id for one in behind}
        kept = {one.id for one in self.routed.decision_path.kept} & own
        if decision.action is Action.INCORRECT or not kept:
            stage = Stage.GRADED_LOW if self._is_near(own) else Stage.NOT_RETRIEVED
            return self._made(
                stage, Verdict.DOUBTFUL, f"the answer stands on what was discarded: {decision.reason}", min(own)
            )
        used = {id_ for one in self.routed.knowledge.internal for id_ in one.strip_ids}
        whole = {one.passage.id for one in self.routed.knowledge.internal if not one.strip_ids}
        left = [one for one in behind if one.id in used or one.passage_id in whole]
        best = max((one.score or 0.0 for one in self.trace.strips or () if one.id in used), default=0.0)
        if not left:
            first = behind[0]
            told = f"the answer stands on “{_short(first.text)}”, {_scored(first.score)}"
            stage = (
                Stage.STRUCK_OUT
                if decision.action is not Action.CORRECT or best < self.policy.upper
                else Stage.NOT_USED
            )
            return self._made(stage, Verdict.DOUBTFUL, told, first.passage_id)
        reached = max(one.score or 0.0 for one in left)
        if used and reached < MUCH_LESS * best:
            told = f"the answer stands on a sentence of score {reached:.2f}, the best kept one has {best:.2f}"
            return self._made(Stage.NOT_USED, Verdict.DOUBTFUL, told, left[0].passage_id)
        if decision.action is not Action.CORRECT:
            return self._made(Stage.NOT_RETRIEVED, Verdict.DOUBTFUL, decision.reason)
        return self._made(Stage.NONE, Verdict.PLAUSIBLE, f"{decision.reason}; the answer stands in what was kept")

    # What both ask

    def _weakest(self) -> tuple[str, float] | None:
        """The sentence of the answer with the least support in all chunks, with its score; None: none was compared."""
        answer = self.record.answer
        said = [answer[start:end] for start, end in sentences(answer)]
        backings = self.meter.measure(said, self.pieces, Event()) if self.pieces else ()
        scored = [(text, one.score) for text, one in zip(said, backings, strict=False) if one.score is not None]
        return min(scored, key=lambda one: one[1], default=None)

    def _behind(self) -> list[Strip]:
        """The sentences of chunks that the answer stands on, best first."""
        answer = self.record.answer
        said = [answer[start:end] for start, end in sentences(answer)]
        ids = dict.fromkeys(id_ for one in self.meter.measure(said, self.pieces, Event()) for id_ in one.pieces[:1])
        strips = {one.id: one for one in self.trace.strips or ()}
        return [strips[id_] for id_ in ids if id_ in strips]

    def _is_near(self, passage_ids: Iterable[str]) -> bool:
        """Whether these chunks are about the question by its words."""
        pieces = [one for one in self.pieces if one.id.rpartition("#")[0] in set(passage_ids)]
        score = self.meter.measure([self.record.question.rstrip(" ?")], pieces, Event())[0].score if pieces else None
        return score is None or score >= NEAR

    def _score(self, passage: Passage) -> float | None:
        grade = self.trace.grade_of(passage.id)
        part = ANSWERING if self.policy.aggregation is Aggregation.TWO_SIGNAL else ""
        return grade.part(part) if grade else None

    def _made(self, stage: Stage, verdict: Verdict, reason: str, chunk: str = "") -> Finding:
        action = self.routed.decision.verdict if self.trace.grades is not None else None
        return Finding(self.record.id, stage, verdict, reason, chunk, action)


def _pieces(trace: Trace) -> Iterable[Piece]:
    """Every sentence of every chunk, by its place."""
    numbers = {one.id: number for number, one in enumerate(trace.passages or (), start=1)}
    for strip in trace.strips or ():
        if strip.passage_id in numbers:
            yield Piece(strip.id, strip.text, numbers[strip.passage_id])


def _scored(score: float | None) -> str:
    return "not graded" if score is None else f"scored {score:.2f}"


def _short(text: str, length: int = 90) -> str:
    one = " ".join(text.split())
    return one if len(one) <= length else f"{one[: length - 1].rstrip()}…"
