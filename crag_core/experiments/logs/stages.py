"""The stage at which a question of a log went wrong, from its record, its graded run, and a policy. Pure.

With something that is known to be right a record is wrong or not, and the first stage that lost the right answer is
named. Without, chunks and scores can only make it doubtful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from threading import Event

from crag_core.base.protocols import Backing, Piece, SupportMeter
from crag_core.base.text.display import against
from crag_core.base.types.decisions import Action
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import ANSWERING, Passage
from crag_core.decision.policy import Policy
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.logs.matching import Reference, declines
from crag_core.experiments.logs.record import LogRecord
from crag_core.trace.grounding.citation_check import SUPPORTED
from crag_core.trace.grounding.claims import sentences, terms_of
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace


class Stage(StrEnum):
    """In the order of a run; the value is said to people as it stands."""

    NOT_RETRIEVED = "not retrieved"
    GRADED_LOW = "retrieved, graded low"
    STRUCK_OUT = "graded, struck out"
    NOT_USED = "kept, not used in the answer"
    BEYOND = "answer goes beyond the evidence"
    NONE = "no fault found"


TITLES = {
    Stage.NOT_RETRIEVED: "Not retrieved",
    Stage.GRADED_LOW: "Graded low",
    Stage.STRUCK_OUT: "Struck out",
    Stage.NOT_USED: "Not used",
    Stage.BEYOND: "Beyond the evidence",
    Stage.NONE: "No fault found",
}
"""Each stage in two words, as a heading."""

MEANS = {
    Stage.NOT_RETRIEVED: "No retrieved chunk holds the right answer: retrieval is at fault.",
    Stage.GRADED_LOW: "A chunk holds it, and this policy discards it: evaluator or thresholds.",
    Stage.STRUCK_OUT: "Its chunk is kept, the sentence is not: sentence cut-off.",
    Stage.NOT_USED: "What is kept holds it, the answer does not: the language model, or its prompt.",
    Stage.BEYOND: "The answer says what no chunk says.",
    Stage.NONE: "The answer is right, or nothing speaks against it.",
}
"""What each says of the system."""


class Verdict(StrEnum):
    """Of a record: by what is known to be right, or, where nothing is, by scores and support."""

    WRONG = "wrong"
    DOUBTFUL = "doubtful"
    RIGHT = "right"
    PLAUSIBLE = "plausible"


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


THIN = 0.6
"""Sentences that score less than this share of the best chunk do not say what it was graded for. The trained evaluator
gives the sentence that answers about 0.7 of what it gives its chunk."""

NEARLY = 0.95
"""Of the best sentence of all chunks: what an answer stands on where the policy is in doubt, and the answer is not."""

MUCH_LESS = 0.5
"""An answer whose sentences score less than this share of the best kept one does not use what was kept."""


def find_stage(trace: Trace, record: LogRecord, policy: Policy, meter: SupportMeter) -> Finding:
    """Of a run over the record's chunks, all graded and all their sentences scored, under `policy`."""
    return Judged(trace, record, meter).under(policy)


@dataclass(frozen=True)
class Judged:
    """A graded record; what no threshold changes is worked out once."""

    trace: Trace
    record: LogRecord
    meter: SupportMeter

    def under(self, policy: Policy) -> Finding:
        return _Case(self, policy, reroute(self.trace, policy)).finding()

    @cached_property
    def truth(self) -> Reference:
        return Reference(self.record, self.meter)

    @cached_property
    def is_right(self) -> bool | None:
        return self.truth.is_right(self.record.answer) if self.record.answer else None

    @cached_property
    def holding(self) -> tuple[Passage, ...]:
        """The chunks that hold a right answer."""
        return tuple(
            one
            for one in self.trace.passages or ()
            if self.truth.is_known(one.text, one.id) or self.truth.stands_in(one.text)
        )

    @cached_property
    def weakest(self) -> tuple[str, float] | None:
        """The sentence of the answer with the least support in all chunks, with its score; None: none was compared."""
        scored = [
            (text, score)
            for text, one in zip(self._said, self._backings, strict=False)
            if (score := one.score if one.score is not None else self._shared(text)) is not None
        ]
        return min(scored, key=lambda one: one[1], default=None)

    @cached_property
    def behind(self) -> tuple[Strip, ...]:
        """The sentences of chunks that the answer stands on, in its order."""
        ids = dict.fromkeys(id_ for one in self._backings for id_ in one.pieces[:1])
        strips = {one.id: one for one in self.trace.strips or ()}
        return tuple(strips[id_] for id_ in ids if id_ in strips)

    @cached_property
    def _said(self) -> list[str]:
        return [self.record.answer[start:end] for start, end in sentences(self.record.answer)]

    @cached_property
    def _backings(self) -> tuple[Backing, ...]:
        return self.meter.measure(self._said, self._pieces, Event()) if self._pieces else ()

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        """Every sentence of every chunk."""
        numbers = {one.id: number for number, one in enumerate(self.trace.passages or (), start=1)}
        own = (one for one in self.trace.strips or () if one.passage_id in numbers)
        return tuple(Piece(one.id, one.text, numbers[one.passage_id]) for one in own)

    def _shared(self, text: str) -> float | None:
        """Of what cannot be measured, such as code or another language, the share of words that the chunks have."""
        said = terms_of(text)
        there = terms_of(" ".join(one.text for one in self._pieces))
        return len(said & there) / len(said) if said else None


@dataclass(frozen=True)
class _Case:
    """A record under one policy."""

    judged: Judged
    policy: Policy
    routed: Reroute

    @property
    def record(self) -> LogRecord:
        return self.judged.record

    @property
    def trace(self) -> Trace:
        return self.judged.trace

    @property
    def passages(self) -> tuple[Passage, ...]:
        return self.trace.passages or ()

    def finding(self) -> Finding:
        if self.judged.truth.can_tell:
            return self._by_truth()
        if self.record.expected is not None:
            return self._by_label(self.record.expected)
        found = self._by_scores()
        if self.judged.is_right is None:
            return found
        if self.judged.is_right:  # of yes and no it is known which is right, and not where it stands
            return self._made(Stage.NONE, Verdict.RIGHT, "the answer says what is right")
        stage = Stage.NOT_USED if found.stage is Stage.NONE else found.stage
        return replace(found, stage=stage, verdict=Verdict.WRONG)

    # With something that is known to be right

    def _by_truth(self) -> Finding:
        holding = self.judged.holding
        if self.judged.is_right:
            weakest = None if holding else self.judged.weakest
            if weakest is None or weakest[1] >= SUPPORTED:
                return self._made(Stage.NONE, Verdict.RIGHT, "the answer says what is right")
            told = f"right, but no chunk says so: support {weakest[1]:.2f} for “{_short(weakest[0])}”"
            return self._made(Stage.BEYOND, Verdict.RIGHT, told)
        if not holding:
            count = len(self.passages)
            told = f"none of the {count} chunks holds the right answer" if count else "nothing was found"
            return self._made(Stage.NOT_RETRIEVED, Verdict.WRONG, told)
        if (lost := self._lost(holding)) is not None:
            return lost
        if not self.record.answer:
            return self._made(Stage.NONE, Verdict.PLAUSIBLE, "what was kept holds the right answer", holding[0].id)
        if self.judged.is_right is None:  # it is known where the answer stands, and not what it is
            weakest = self.judged.weakest
            if (weakest is None or weakest[1] >= SUPPORTED) and not declines(self.record.answer):
                return self._made(Stage.NONE, Verdict.PLAUSIBLE, "the answer stands in the chunks", holding[0].id)
            return self._about_answer(Verdict.DOUBTFUL, holding[0].id)
        return self._about_answer(Verdict.WRONG, holding[0].id)

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

    def _still_holds(self, passage: Passage, text: str) -> bool:
        """What is left of a chunk that held the answer."""
        if not text:
            return False
        return text == passage.text or not self.judged.truth.spans or self.judged.truth.is_left_in(text)

    def _holding_strip(self, passages: Sequence[Passage]) -> Strip | None:
        ids = {one.id for one in passages}
        own = [one for one in self.trace.strips or () if one.passage_id in ids]
        return next((one for one in own if self.judged.truth.is_left_in(one.text)), None)

    def _about_answer(self, verdict: Verdict, chunk: str) -> Finding:
        """The evidence had it; the answer did not."""
        if declines(self.record.answer):
            return self._made(Stage.NOT_USED, verdict, "the answer says that there is none", chunk)
        weakest = self.judged.weakest
        if weakest is not None and weakest[1] < SUPPORTED:
            reason = f"support {weakest[1]:.2f} for “{_short(weakest[0])}”"
            return self._made(Stage.BEYOND, verdict, reason, chunk)
        return self._made(Stage.NOT_USED, verdict, "the answer says something else that stands in the chunks", chunk)

    def _by_label(self, expected: Expected) -> Finding:
        """Of a record of which is only known whether its chunks answer it."""
        found = self._by_scores()
        if expected.is_answerable:
            is_low = found.stage is Stage.NOT_RETRIEVED and bool(self.passages)
            return replace(found, stage=Stage.GRADED_LOW, verdict=Verdict.WRONG) if is_low else found
        if self.record.answer and declines(self.record.answer):
            return self._made(Stage.NONE, Verdict.RIGHT, "the chunks do not answer it, and the answer says so")
        told = "the chunks do not answer it, by its label"
        return self._made(Stage.NOT_RETRIEVED, Verdict.WRONG, told)

    # Without

    def _by_scores(self) -> Finding:
        """The first stage that looks doubtful."""
        decision, answer = self.routed.decision, self.record.answer
        if not self.passages:
            return self._doubt(Stage.NOT_RETRIEVED, "nothing was found")
        has_none = declines(answer)
        ending = "; the answer says that there is none" if answer and has_none else ""
        if decision.action is not Action.CORRECT:
            card, best = self.trace.settings.evaluator, self._best()
            if best is not None and best >= card.upper:
                score, upper = against(best, card.upper)
                told = f"best chunk {score} ≥ {upper}, where its evaluator has its upper threshold"
                return self._doubt(Stage.GRADED_LOW, f"{decision.reason}; {told}{ending}")
            if decision.action is Action.AMBIGUOUS and answer and not has_none and self._stands_on_the_best():
                told = f"{decision.reason}; the answer stands on the best sentences"
                return self._made(Stage.NONE, Verdict.PLAUSIBLE, told)
            return self._doubt(Stage.NOT_RETRIEVED, f"{decision.reason}{ending}")
        if not answer:
            return self._made(Stage.NONE, Verdict.PLAUSIBLE, decision.reason)
        best, kept = self._best() or 0.0, self._kept_strips()
        reached = max((one.score or 0.0 for one in kept), default=0.0)
        is_thin = bool(self.trace.strips) and self._is_refined() and reached < THIN * best
        thin = f"best kept sentence {reached:.2f}, best chunk {best:.2f}"
        if has_none:
            return self._doubt(Stage.STRUCK_OUT if is_thin else Stage.NOT_USED, f"{thin}{ending}")
        weakest = self.judged.weakest
        if weakest is not None and weakest[1] < SUPPORTED:
            return self._doubt(Stage.BEYOND, f"support {weakest[1]:.2f} for “{_short(weakest[0])}”")
        if is_thin:
            return self._doubt(Stage.STRUCK_OUT, thin)
        return self._by_support(kept, reached)

    def _by_support(self, kept: Sequence[Strip], reached: float) -> Finding:
        """The answer stands in the chunks: on something that is about as good as the best that was kept?"""
        behind = self.judged.behind
        if not behind or not kept:
            return self._made(Stage.NONE, Verdict.PLAUSIBLE, self.routed.decision.reason)
        own = max(behind, key=lambda one: one.score or 0.0)
        if (own.score or 0.0) < MUCH_LESS * reached:
            told = (
                f"the answer stands on “{_short(own.text)}”, {_scored(own.score)}; the best kept one has {reached:.2f}"
            )
            return self._doubt(Stage.NOT_USED, told, own.passage_id)
        return self._made(
            Stage.NONE, Verdict.PLAUSIBLE, f"{self.routed.decision.reason}; the answer stands in the chunks"
        )

    def _stands_on_the_best(self) -> bool:
        """Whether the chunks support the answer, and what it stands on scores about as high as anything in them."""
        weakest, behind = self.judged.weakest, self.judged.behind
        if weakest is None or weakest[1] < SUPPORTED or not behind:
            return False
        best = max((one.score or 0.0 for one in self.trace.strips or ()), default=0.0)
        return max(one.score or 0.0 for one in behind) >= NEARLY * best

    def _best(self) -> float | None:
        return max((score for one in self.passages if (score := self._score(one)) is not None), default=None)

    def _is_refined(self) -> bool:
        """Whether sentences were picked, and not whole chunks."""
        return any(one.strip_ids for one in self.routed.knowledge.internal) or not self.routed.knowledge.internal

    def _kept_strips(self) -> list[Strip]:
        used = {id_ for one in self.routed.knowledge.internal for id_ in one.strip_ids}
        whole = {one.passage.id for one in self.routed.knowledge.internal if not one.strip_ids}
        return [one for one in self.trace.strips or () if one.id in used or one.passage_id in whole]

    def _doubt(self, stage: Stage, reason: str, chunk: str = "") -> Finding:
        return self._made(stage, Verdict.DOUBTFUL, reason, chunk)

    # What both ask

    def _score(self, passage: Passage) -> float | None:
        grade = self.trace.grade_of(passage.id)
        part = ANSWERING if self.policy.score == "two_signals" else ""
        return grade.part(part) if grade else None

    def _made(self, stage: Stage, verdict: Verdict, reason: str, chunk: str = "") -> Finding:
        action = self.routed.decision.verdict if self.trace.grades is not None else None
        return Finding(self.record.id, stage, verdict, reason, chunk, action)


def _scored(score: float | None) -> str:
    return "not graded" if score is None else f"scored {score:.2f}"


def _short(text: str, length: int = 90) -> str:
    one = " ".join(text.split())
    return one if len(one) <= length else f"{one[: length - 1].rstrip()}…"
