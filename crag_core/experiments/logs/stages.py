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
from crag_core.base.text.display import against, counted, shortened
from crag_core.base.types.decisions import Action
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import ANSWERING, Passage
from crag_core.decision.policy import Policy
from crag_core.decision.reasons import FIELD, Terms, reason_in
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


_TWO_WORDS = ("Not retrieved", "Graded low", "Struck out", "Not used", "Beyond the evidence", "No fault found")
TITLES = dict(zip(Stage, _TWO_WORDS, strict=True))
"""Each stage as a heading."""

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


@dataclass(frozen=True)
class Judged:
    """A run over the record's chunks, all graded and all their sentences scored; what no threshold changes is worked
    out once."""

    trace: Trace
    record: LogRecord
    meter: SupportMeter

    def under(self, policy: Policy, terms: Terms = FIELD) -> Finding:
        """`terms` are those that its reason has the scores and thresholds in."""
        return _Case(self, policy, reroute(self.trace, policy), terms).finding()

    @cached_property
    def truth(self) -> Reference:
        return Reference(self.record, self.meter)

    @cached_property
    def is_right(self) -> bool | None:
        return self.truth.is_right(self.record.answer) if self.record.answer else None

    @cached_property
    def holding(self) -> tuple[Passage, ...]:
        return tuple(one for one in self.trace.passages or () if self.truth.is_held_by(one.text, one.id))

    @cached_property
    def unsupported(self) -> str:
        """The sentence of the answer with the least support in all chunks, in words; "" where all are supported."""
        compared = zip(self._said, self._backings, strict=False)
        scores = ((text, one.score if one.score is not None else self._shared(text)) for text, one in compared)
        scored = [(text, score) for text, score in scores if score is not None]
        text, least = min(scored, key=lambda one: one[1], default=("", None))
        return f"support {least:.2f} for “{_short(text)}”" if least is not None and least < SUPPORTED else ""

    @cached_property
    def behind(self) -> tuple[Strip, ...]:
        """The sentences of chunks that the answer stands on, in its order."""
        ids = dict.fromkeys(id_ for one in self._backings for id_ in one.pieces[:1])
        strips = {one.id: one for one in self.trace.strips or ()}
        return tuple(strips[id_] for id_ in ids if id_ in strips)

    @cached_property
    def stands_on_the_best(self) -> bool:
        """Whether the chunks support the answer, and what it stands on scores about as high as anything in them."""
        if self.unsupported or not self.behind:
            return False
        return _highest(self.behind) >= NEARLY * _highest(self.trace.strips or ())

    @cached_property
    def _said(self) -> list[str]:
        return [self.record.answer[start:end] for start, end in sentences(self.record.answer)]

    @cached_property
    def _backings(self) -> tuple[Backing, ...]:
        return self.meter.measure(self._said, self._pieces, Event()) if self._pieces else ()

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
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
    judged: Judged
    policy: Policy
    routed: Reroute
    terms: Terms

    def finding(self) -> Finding:
        expected, is_right = self.judged.record.expected, self.judged.is_right
        if self.judged.truth.can_tell:
            return self._by_truth()
        if expected is not None:
            return self._by_label(expected)
        found = self._by_scores()
        if is_right is None:
            return found
        if is_right:  # of yes and no it is known which is right, and not where it stands
            return self._made(Stage.NONE, Verdict.RIGHT, "the answer says what is right")
        stage = Stage.NOT_USED if found.stage is Stage.NONE else found.stage
        return replace(found, stage=stage, verdict=Verdict.WRONG)

    # With something that is known to be right

    def _by_truth(self) -> Finding:
        judged, answer = self.judged, self.judged.record.answer
        if judged.is_right:
            if judged.holding or not judged.unsupported:
                return self._made(Stage.NONE, Verdict.RIGHT, "the answer says what is right")
            return self._made(Stage.BEYOND, Verdict.RIGHT, f"right, but no chunk says so: {judged.unsupported}")
        if not judged.holding:
            count = len(self._passages)
            told = f"the right answer is in none of {counted(count, 'chunk')}" if count else "nothing was found"
            return self._made(Stage.NOT_RETRIEVED, Verdict.WRONG, told)
        if (lost := self._lost()) is not None:
            return lost
        chunk = judged.holding[0].id
        if not answer:
            return self._made(Stage.NONE, Verdict.PLAUSIBLE, "what was kept holds the right answer", chunk)
        # Without a verdict it is known where the answer stands, and not what it is.
        verdict = Verdict.DOUBTFUL if judged.is_right is None else Verdict.WRONG
        if declines(answer):
            return self._made(Stage.NOT_USED, verdict, "the answer says that there is none", chunk)
        if judged.unsupported:
            return self._made(Stage.BEYOND, verdict, judged.unsupported, chunk)
        if judged.is_right is None:
            return self._made(Stage.NONE, Verdict.PLAUSIBLE, "the answer stands in the chunks", chunk)
        return self._made(Stage.NOT_USED, verdict, "the answer says something else that stands in the chunks", chunk)

    def _lost(self) -> Finding | None:
        """Where the policy loses every chunk that holds the answer, or the sentences of it that do."""
        decision, holding = self.routed.decision, self.judged.holding
        kept = {one.id for one in self.routed.decision_path.kept}
        there = [one for one in holding if one.id in kept]
        if not there or decision.action is Action.INCORRECT:
            best = max(holding, key=lambda one: self._score(one) or 0.0)
            told = f"{_scored(self._score(best))}: {self._reason}"
            return self._made(Stage.GRADED_LOW, Verdict.WRONG, told, best.id)
        texts = {one.passage.id: one.text for one in self.routed.knowledge.internal}
        if any(self._still_holds(one, texts.get(one.id, "")) for one in there):
            return None
        ids = {one.id for one in there}
        own = (one for one in self.judged.trace.strips or () if one.passage_id in ids)
        strip = next((one for one in own if self.judged.truth.is_left_in(one.text)), None)
        told = f"“{_short(strip.text)}” {_scored(strip.score)}" if strip else "its sentences were struck out"
        return self._made(Stage.STRUCK_OUT, Verdict.WRONG, told, there[0].id)

    def _still_holds(self, passage: Passage, text: str) -> bool:
        """What is left of a chunk that held the answer."""
        truth = self.judged.truth
        return bool(text) and (text == passage.text or not truth.spans or truth.is_left_in(text))

    def _by_label(self, expected: Expected) -> Finding:
        """Of a record of which is only known whether its chunks answer it."""
        found, answer = self._by_scores(), self.judged.record.answer
        if expected.is_answerable:
            is_low = found.stage is Stage.NOT_RETRIEVED and bool(self._passages)
            return replace(found, stage=Stage.GRADED_LOW, verdict=Verdict.WRONG) if is_low else found
        if answer and declines(answer):
            return self._made(Stage.NONE, Verdict.RIGHT, "the chunks do not answer it, and the answer says so")
        return self._made(Stage.NOT_RETRIEVED, Verdict.WRONG, "the chunks do not answer it, by its label")

    # Without

    def _by_scores(self) -> Finding:
        if not self._passages:
            return self._doubt(Stage.NOT_RETRIEVED, "nothing was found")
        decision, answer = self.routed.decision, self.judged.record.answer
        has_none = declines(answer)
        ending = "; the answer says that there is none" if answer and has_none else ""
        best = max((one for one in map(self._score, self._passages) if one is not None), default=None)
        if decision.action is not Action.CORRECT:
            card = self.judged.trace.settings.evaluator
            if best is not None and best >= card.upper:
                reached, upper = against(best, card.upper)
                told = f"best chunk {reached} ≥ {upper}, where its evaluator has its upper threshold"
                return self._doubt(Stage.GRADED_LOW, f"{self._reason}; {told}{ending}")
            if decision.action is Action.AMBIGUOUS and not has_none and self.judged.stands_on_the_best:
                return self._plausible("; the answer stands on the best sentences")
            return self._doubt(Stage.NOT_RETRIEVED, f"{self._reason}{ending}")
        if not answer:
            return self._plausible("")
        kept, internal = self._kept_strips(), self.routed.knowledge.internal
        highest = _highest(kept)
        is_refined = any(one.strip_ids for one in internal) or not internal  # sentences were picked, not whole chunks
        is_thin = bool(self.judged.trace.strips) and is_refined and highest < THIN * (best or 0.0)
        thin = f"best kept sentence {highest:.2f}, best chunk {best or 0.0:.2f}"
        if has_none:
            return self._doubt(Stage.STRUCK_OUT if is_thin else Stage.NOT_USED, f"{thin}{ending}")
        if self.judged.unsupported:
            return self._doubt(Stage.BEYOND, self.judged.unsupported)
        if is_thin:
            return self._doubt(Stage.STRUCK_OUT, thin)
        if not self.judged.behind or not kept:
            return self._plausible("")
        own = max(self.judged.behind, key=lambda one: one.score or 0.0)
        if (own.score or 0.0) < MUCH_LESS * highest:
            told = f"the answer stands on “{_short(own.text)}”, {_scored(own.score)}"
            return self._doubt(Stage.NOT_USED, f"{told}; the best kept one has {highest:.2f}", own.passage_id)
        return self._plausible("; the answer stands in the chunks")

    def _kept_strips(self) -> list[Strip]:
        used = {id_ for one in self.routed.knowledge.internal for id_ in one.strip_ids}
        whole = {one.passage.id for one in self.routed.knowledge.internal if not one.strip_ids}
        return [one for one in self.judged.trace.strips or () if one.id in used or one.passage_id in whole]

    def _doubt(self, stage: Stage, reason: str, chunk: str = "") -> Finding:
        return self._made(stage, Verdict.DOUBTFUL, reason, chunk)

    def _plausible(self, ending: str) -> Finding:
        return self._made(Stage.NONE, Verdict.PLAUSIBLE, f"{self._reason}{ending}")

    # What both ask

    @property
    def _reason(self) -> str:
        return reason_in(self.terms, self.policy, self.routed.decision)

    @property
    def _passages(self) -> tuple[Passage, ...]:
        return self.judged.trace.passages or ()

    def _score(self, passage: Passage) -> float | None:
        grade = self.judged.trace.grade_of(passage.id)
        part = ANSWERING if self.policy.score == "two_signals" else ""
        return grade.part(part) if grade else None

    def _made(self, stage: Stage, verdict: Verdict, reason: str, chunk: str = "") -> Finding:
        action = self.routed.decision.verdict if self.judged.trace.grades is not None else None
        return Finding(stage, verdict, reason, chunk, action)


def _highest(strips: Sequence[Strip]) -> float:
    return max((one.score or 0.0 for one in strips), default=0.0)


def _scored(score: float | None) -> str:
    return "not graded" if score is None else f"scored {score:.2f}"


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), 90)
