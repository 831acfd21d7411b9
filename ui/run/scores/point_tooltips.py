"""What the picture of the scores says of one passage when it is pointed at."""

from __future__ import annotations

from collections.abc import Sequence

from crag_core.base.text.display import clean, shortened
from crag_core.base.types import ANSWERING, TOPICAL, Decision, EvaluatorCard, Grade, Origin, Passage
from crag_core.decision.policy import Policy
from crag_core.trace.trace import Trace

NOT_GRADED = "not graded"
_LONGEST = 200  # characters of a grader's reason


def name(passage: Passage) -> str:
    return clean(passage.source) + (f", page {passage.page}" if passage.page else "")


def score(numbers: Sequence[tuple[str, str]]) -> str:
    """ "score 0.83", or of two signals "answering 0.71, topical 0.12"; "" where it was not graded."""
    if any(number.startswith(NOT_GRADED) for _, number in numbers):
        return ""
    return ", ".join(f"{part or 'score'} {number}" for part, number in numbers)


def ungraded(grade: Grade | None, policy: Policy, passage: Passage) -> str:
    """ "not graded", and what the policy counts that as; "" where it was graded."""
    if grade is None or grade.score is not None:
        return "" if grade else NOT_GRADED
    is_counted = policy.ungraded_score is not None and passage.origin is Origin.CORPUS
    return NOT_GRADED + (f", counts as {policy.ungraded_score:.2f}" if is_counted else "")


def edit(kind: str, own: Grade | None) -> str:
    if kind == "dropped":
        return "dropped by you: counts as never found"
    graded = NOT_GRADED if own is None or own.score is None else f"graded {own.score:.2f}"
    return f"pinned by you: counts as 1.00, {graded}" if kind else ""


def deciding(parts: Sequence[str], decision: Decision) -> str:
    if not parts:
        return ""
    if decision.topical is None:
        return "decides" if len(decision.deciding) == 1 else "decides, with others"
    return f"decides: best {' and '.join(parts)}"


def reason(grade: Grade | None) -> str:
    """The grader's, or why there is no score; not the two signals that the trained evaluator says first."""
    if grade is not None and grade.score is None:
        return shortened(clean(grade.cause), _LONGEST)
    both = grade.two_signals if grade else None
    first = f"{ANSWERING} {both[0]:.2f}, {TOPICAL} {both[1]:.2f}" if both else ""
    return shortened(clean(grade.reason.removeprefix(first).lstrip(", ")), _LONGEST) if grade else ""


def evaluators(trace: Trace) -> tuple[str, ...]:
    """Who graded: the evaluator of the decision, then those of the second opinions."""
    settings = trace.settings
    return (
        _titled(settings.evaluator, settings.writer),
        *(_titled(opinion.evaluator, opinion.writer) for opinion in trace.opinions),
    )


def _titled(card: EvaluatorCard, writer: str) -> str:
    return clean(f"{card.title} ({writer})" if card.calls_model else card.title)
