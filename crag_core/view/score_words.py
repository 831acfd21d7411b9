"""What the score line says: of one point, of each threshold and how far it may move, and of what decides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crag_core.base.text.display import against, clean, shortened
from crag_core.base.types.decisions import Action, Decision
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Origin, Passage
from crag_core.decision.policy import Policy
from crag_core.decision.reasons import FIELD, Terms, reason_in
from crag_core.decision.stability import Flip, Interval, Stability, flips_of

NOT_GRADED = "not graded"
NOT_COMPARED = "coarse, not compared"
CALLED = {ANSWERING: "answer", TOPICAL: "subject", "upper": "bar for an answer", "lower": "bar for the subject"}
"""What the two signals and their thresholds are called on the screen."""
ALONE = Terms(CALLED[ANSWERING], CALLED[TOPICAL], "answer bar", "subject bar")
"""The same within a sentence; `BESIDE` their scores, which tell which bar it is."""
BESIDE = ALONE._replace(upper="bar", lower="bar")
QUESTIONS = {ANSWERING: "holds the answer?", TOPICAL: "on the subject?"}
STEP, PAGE = 0.005, 0.05
"""How far one press of an arrow key and of a page key moves a threshold."""

_MOST_NAMED = 6  # passages in a sentence
_LONGEST = 200  # characters of a grader's reason


@dataclass(frozen=True)
class Mark:
    """A threshold with the interval over which the action stays, and the actions beyond it (None: end of the scale).

    `called` is its name on the screen. `meaning` says what lies on the far side of the mark, `text` the interval
    in words.
    """

    name: str
    called: str
    value: float
    meaning: str
    low: float
    high: float
    below: Action | None
    above: Action | None
    text: str


class Number(NamedTuple):
    """A score with its name, and as it is shown beside the thresholds."""

    name: str
    value: float
    text: str


def numbers_of(grade: Grade | None, policy: Policy, *, has_two: bool) -> tuple[Number, ...]:
    """What a grade is compared by: both signals, or the one score; () where it was not graded."""
    if grade is None or grade.score is None:
        return ()
    both = grade.two_signals if has_two else None
    if both is None:
        return (Number("score", grade.score, against(grade.score, policy.lower, policy.upper)[0]),)
    named = ((ANSWERING, both[0], policy.upper), (TOPICAL, both[1], policy.lower))
    return tuple(Number(CALLED[name], value, against(value, limit)[0]) for name, value, limit in named)


def signals_of(grade: Grade) -> tuple[Number, ...]:
    """Both signals, for beside the one number that is compared; () where the evaluator does not tell them apart."""
    both = zip((ANSWERING, TOPICAL), grade.two_signals or (), strict=False)
    return tuple(Number(CALLED[name], value, against(value)[0]) for name, value in both)


def marks_of(policy: Policy, decision: Decision, stable: Stability) -> tuple[Mark, Mark]:
    under, over = policy.bare_label(Action.INCORRECT), policy.bare_label(Action.CORRECT)
    lower = f"{under} {'at or below' if policy.at_lower is Action.INCORRECT else 'below'} it"
    upper = f"{over} {'above it' if policy.at_upper is Action.AMBIGUOUS else 'from it up'}"
    return (
        _mark("lower", policy.lower, clean(lower), stable.lower, decision),
        _mark("upper", policy.upper, clean(upper), stable.upper, decision),
    )


def _mark(name: str, value: float, meaning: str, stays: Interval, decision: Decision) -> Mark:
    terms = FIELD if decision.topical is None else ALONE
    flips = (flip_text(flip, terms) for flip in flips_of(name, value, stays))
    message = ", ".join(flips) or f"{decision.action} at any {getattr(terms, name)}"
    called = name if decision.topical is None else CALLED[name]
    meaning = f"{meaning} ({name} threshold)"
    return Mark(name, called, value, meaning, stays.low, stays.high, stays.below, stays.above, message)


def reason_of(decision: Decision, policy: Policy) -> str:
    return reason_in(BESIDE, policy, decision)


def threshold_names(policy: Policy) -> tuple[str, str]:
    return (CALLED["lower"], CALLED["upper"]) if policy.compares_two_scores else ("lower", "upper")


def flip_text(flip: Flip, terms: Terms) -> str:
    """ "AMBIGUOUS if upper > 0.86"."""
    return f"{flip.to} if {getattr(terms, flip.threshold)} {bound(flip.relation, flip.at)}"


def bound(relation: str, at: float) -> str:
    """ "> 0.86": true as it stands, and of every place of a mark; three decimals where two would leave one out."""
    is_below = relation in ("<", "≤")
    for digits in (2, 3):
        scale = 10**digits
        steps = round(at * scale, 6)
        value = (math.floor(steps) if is_below else math.ceil(steps)) / scale
        if round(value - at, 9) == 0:
            return f"{relation} {value:.{digits}f}"
        places = round(at / STEP, 6)
        nearest = (math.floor(places) if is_below else math.ceil(places)) * STEP
        if digits == 3 or round(nearest - value, 9) * (1 if is_below else -1) <= 0:
            break
    return f"{'≤' if is_below else '≥'} {value:.{digits}f}"


def sentences(policy: Policy, decision: Decision, numbers: Mapping[str, str]) -> tuple[str, ...]:
    """Why the question goes where it goes, and by which passages; `numbers` are theirs by id."""
    who = _who(policy, decision, [numbers[id_] for id_ in decision.deciding if id_ in numbers])
    return tuple(one for one in (f"{decision.action}: {clean(reason_of(decision, policy))}.", who) if one)


def _who(policy: Policy, decision: Decision, numbers: list[str]) -> str:
    if decision.rule or decision.score is None or not numbers:
        return ""
    if policy.judges_together:
        return "A language model read all chunks together; it is no chunk's own score."
    if policy.scores_the_set:
        return "The overall score is made of measures of the whole set; it is no chunk's own score."
    if len(numbers) == 1:
        both = " in both" if decision.topical is not None and decision.action is not Action.CORRECT else ""
        return f"Chunk {numbers[0]} decides{both}."
    if decision.topical is not None:
        return f"Chunk {numbers[0]} answers best, chunk {numbers[1]} is the best on the subject."
    if len(numbers) > _MOST_NAMED:
        return f"{len(numbers)} chunks decide together."
    return f"Chunks {', '.join(numbers[:-1])} and {numbers[-1]} decide together."


# --- one point ------------------------------------------------------------------------------------------------------


def score_text(numbers: Sequence[tuple[str, str]]) -> str:
    """ "score 0.83", or of two signals "answer 0.71, subject 0.12"; "" where it was not graded."""
    if any(number.startswith(NOT_GRADED) for _, number in numbers):
        return ""
    return ", ".join(f"{CALLED.get(part, 'score')} {number}" for part, number in numbers)


def ungraded_text(grade: Grade | None, policy: Policy, passage: Passage) -> str:
    """ "not graded", and what the policy counts that as; "" where it was graded."""
    if grade is None or grade.score is not None:
        return "" if grade else NOT_GRADED
    is_counted = policy.ungraded is not None and passage.origin is Origin.CORPUS
    counted, *_ = against(policy.ungraded or 0.0, policy.lower, policy.upper)
    return NOT_GRADED + (f", counts as {counted}" if is_counted else "")


def edit_text(kind: str, own: Sequence[Number]) -> str:
    """`own`: what it is graded, as `numbers_of` has it."""
    if kind == "dropped":
        return "dropped by you: counts as never found"
    told = ", ".join(one.text if len(own) == 1 else f"{one.name} {one.text}" for one in own)
    graded = f"graded {told}" if own else NOT_GRADED
    return f"pinned by you: counts as 1.00, {graded}" if kind else ""


def decides_by_chunks(policy: Policy, decision: Decision) -> bool:
    """Else no chunk is marked as deciding: a rule asks no score, and measures of the whole set are no chunk's."""
    return decision.rule is None and not policy.scores_the_set


def deciding_text(parts: Sequence[str], decision: Decision) -> str:
    if not parts:
        return ""
    if decision.topical is None:
        return "decides" if len(decision.deciding) == 1 else "decides, with others"
    return f"decides: best {' and '.join(CALLED[part] for part in parts)}"


def reason_text(grade: Grade | None) -> str:
    return shortened(clean(own_reason(grade) if grade.score is not None else grade.cause), _LONGEST) if grade else ""


def own_reason(grade: Grade) -> str:
    """The grader's, without the two signals that the trained evaluator says first."""
    both = grade.two_signals
    if not both:
        return grade.reason
    return grade.reason.removeprefix(f"{ANSWERING} {both[0]:.2f}, {TOPICAL} {both[1]:.2f}").lstrip(", ")
