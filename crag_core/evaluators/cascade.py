"""An evaluator made of two: the second reads the chunks whose first score leaves doubt."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from crag_core.base.errors import CragError, Stopped, UnknownName
from crag_core.base.protocols import Cancel, Evaluator
from crag_core.base.text.display import against
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import ANSWERING, Passage

SHOWN_FORM = "cross-encoder+llm@0.5-0.9"
_NAME = re.compile(r"(?P<first>[^+]+)\+(?P<second>[^+]+)@(?P<low>[01]?\.?\d{0,4})-(?P<high>[01]?\.?\d{0,4})")


@dataclass(frozen=True)
class CascadeName:
    """`FIRST+SECOND@LOW-HIGH`: first scores from `low` to `high` are read again."""

    first: str
    second: str
    low: float
    high: float


def parse_cascade(name: str) -> CascadeName | None:
    """None where the name is of one evaluator; raises `UnknownName` for one of two that cannot be."""
    if "+" not in name or len(name) > 400:
        return None
    found = _NAME.fullmatch(name)
    try:
        ends = (float(found["low"]), float(found["high"])) if found else (1.0, 0.0)
    except ValueError:
        ends = (1.0, 0.0)
    if found is None or not 0.0 <= ends[0] < ends[1] <= 1.0 or found["first"] == found["second"]:
        raise UnknownName(
            f"Expected two evaluators such as {SHOWN_FORM}, found {name[:80]!r}.",
            hint="The second is asked about the chunks that the first scores between the two numbers, in 0..1.",
        )
    return CascadeName(found["first"], found["second"], *ends)


def cascade_card(name: str, card_of: Callable[[str], EvaluatorCard]) -> EvaluatorCard | None:
    """What is known of an evaluator made of two, with the thresholds of the first; None where it is one."""
    parts = parse_cascade(name)
    if parts is None:
        return None
    first, second = card_of(parts.first), card_of(parts.second)
    return replace(
        first,
        name=name,
        title=f"{first.title}, then {second.title} at {parts.low:g} to {parts.high:g}",
        scale=f"{first.scale}; from {parts.low:g} to {parts.high:g} as {second.title} says",
        calls_model=first.calls_model or second.calls_model,
        spares_calls=not first.calls_model,
        cost=f"{first.cost}; of the chunks between: {second.cost}",
        batch=max(first.batch, second.batch),
        version="+".join(filter(None, (first.version, second.version))),
    )


class Cascade:
    """Grades by `first`, and by `second` what `first` scores within the band (ends included) or cannot score.

    Where the first tells *answering* from *topical*, the band holds for *answering*. The second's 0, lower, upper and 1
    become 0, the ends of the band, and 1: what it calls good lies above the band, what it calls bad below. Where the
    second fails, the first score stays and the reason says so; `Stopped` ends both.
    """

    def __init__(self, card: EvaluatorCard, first: Evaluator, second: Evaluator, band: tuple[float, float]) -> None:
        self.card, self._first, self._second, self._band = card, first, second, band

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        grades = self._first.grade(question, passages, cancel)
        doubtful = [one for one, grade in zip(passages, grades, strict=True) if self._is_doubtful(grade)]
        if not doubtful:
            return grades
        try:
            second = {grade.passage_id: grade for grade in self._second.grade(question, doubtful, cancel)}
        except Stopped:
            raise
        except CragError as error:
            failed = Grade("", None, cause=error.message)
            second = {one.id: failed for one in doubtful}
        return tuple(self._joined(one, second[one.passage_id]) if one.passage_id in second else one for one in grades)

    def _is_doubtful(self, grade: Grade) -> bool:
        value = grade.part(ANSWERING)
        return value is None or self._band[0] <= value <= self._band[1]

    def _joined(self, first: Grade, second: Grade) -> Grade:
        card, said, own = self._second.card, second.part(ANSWERING), first.part(ANSWERING)
        if said is None:
            reason = f"{first.reason}; not read again by {card.title}: {second.cause or 'not graded'}"
            return replace(first, reason=reason, usage=first.usage + second.usage)
        score = self._on_scale(said)
        value, *_ = against(said, card.lower, card.upper)
        before = "not graded" if own is None else against(own, *self._band)[0]
        parts = {name: value for name, value in first.parts if name != ANSWERING}
        parts |= {ANSWERING: score} if first.two_signals else {}
        return replace(
            second,
            passage_id=first.passage_id,
            score=score,
            reason=f"{card.title}: {value} (first score {before}). {second.reason}",
            parts=tuple(parts.items()),
            seconds=first.seconds + second.seconds,
            usage=first.usage + second.usage,
            coarse=None if first.coarse is None else False,  # it is on the finer scale now
        )

    def _on_scale(self, score: float) -> float:
        card = self._second.card
        own, wanted = (0.0, card.lower, card.upper, 1.0), (0.0, *self._band, 1.0)
        at = 2 if score >= card.upper else 1 if score >= card.lower else 0
        width = own[at + 1] - own[at]
        share = (score - own[at]) / width if width else 0.0
        return round(wanted[at] + share * (wanted[at + 1] - wanted[at]), 9)
