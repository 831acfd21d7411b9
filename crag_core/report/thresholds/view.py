"""Chosen thresholds as plain data, for the Tune page and the report: error rates, and how far to trust them.

`names` are those of the lower and the upper threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crag_core.base.text.display import counted, readable
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.thresholds.objective import Plateau
from crag_core.experiments.thresholds.recommend import Recommendation
from crag_core.experiments.thresholds.threshold_board import Array, Board, Rates
from crag_core.view.score_words import threshold_names

Names = tuple[str, str]
NAMES: Names = ("lower", "upper")
_RATES = (
    ("answered", "Answered", "Of the questions that the documents answer: CORRECT, so answered from them."),
    ("confidently_wrong", "Confidently wrong", "Of the questions that the documents do not answer: taken for answered "
     "(CORRECT). An answer that nothing supports may follow."),
    ("needless_web", "Needless web", "Of the questions that the documents answer: the web is searched all the same. "
     "That costs time."),
    ("missed_web", "Missed web", "Of the questions that the documents do not answer: the web is not searched, so "
     "nothing better can be found."),
    ("ungraded", "Ungraded", "Of all questions: at least one chunk that counts could not be graded, so the decision "
     "rests on less."),
    ("discarded", "Answer discarded", "Of the questions that the documents answer: the chunks found are set aside "
     "(INCORRECT)."),
    ("web", "Web rate", "Of all questions: the web is searched."),
)  # fmt: skip
"""(field of `Rates`, title, meaning)"""
COSTS = (
    ("wrong", "Wrong answer", "A question that the documents do not answer is CORRECT, and is answered from them."),
    ("missed", "Discarded answer", "A question that they do answer is INCORRECT: its evidence is set aside."),
    ("mixed_up", "Mixed-up route", "AMBIGUOUS for what the documents are not about, INCORRECT for what they nearly "
     "answer."),
    ("web", "Web search", "The unit of all costs, unless they are changed."),
    ("call", "LLM call", "Grading, queries and the answer."),
)  # fmt: skip
"""(field of `Costs`, title, meaning)"""
_COMPARED = ("answered", "confidently_wrong", "needless_web", "discarded", "web")
_NEARLY_ALL = 0.99
"""A web rate from which on the thresholds hardly decide anything."""


@dataclass(frozen=True)
class RateFigure:
    """`value` is "" where nothing was measured."""

    value: str
    name: str
    interval: str
    meaning: str


def rate_figures(board: Board, rates: Rates) -> tuple[RateFigure, ...]:
    """Without those of the web under a policy that never searches it."""
    return tuple(
        _rate(name, meaning, getattr(rates, field), rates.among(field))
        for field, name, meaning in _RATES
        if board.web.any() or not len(board) or "web" not in field
    )


def _rate(name: str, meaning: str, share: Estimate | None, among: int) -> RateFigure:
    if share is None:
        return RateFigure("", name, "No such question.", meaning)
    hits = f"{round(share.value * among)} of {among}"
    return RateFigure(f"{share.value:.1%}", name, f"{hits}; {_interval(share)}", meaning)


def describe_effort(rates: Rates) -> str:
    return f"A question is expected to take {rates.calls:.1f} LLM calls: grading, queries and the answer."


# --- trust ------------------------------------------------------------------------------------------------------------


def recommendation_lines(found: Recommendation, is_own: bool = True, names: Names = NAMES) -> tuple[str, ...]:
    """How recommended thresholds came about, and how far others would do; `is_own`: they are those that are shown."""
    return () if found.why_not else (*limit_lines(found), *_lines(found, is_own, names))


def _lines(found: Recommendation, is_own: bool, names: Names) -> Iterator[str]:
    pair = describe_pair(found.lower, found.upper, names)
    if found.keep:
        yield f"Nothing better found: keep yours, {pair}. {found.keep}"
        return
    who = "These thresholds" if is_own else f"The recommended thresholds, {pair},"
    chosen, others = counted(found.chosen_on, "question"), counted(found.judged_on, "other question")
    if found.guaranteed:
        yield (
            f"{who} are the last that passed, in an order chosen on {chosen}. They were tested and judged on {others}."
        )
    else:
        yield f"{who} were chosen on {chosen} and judged on {others}."
    if found.plateau:
        yield _describe_plateau(found, found.plateau, names)
    web = found.compared[0].rates.web if found.compared else None
    if web is not None and web.value >= _NEARLY_ALL:
        yield (
            "They search the web for nearly every question: at these costs no score of this evaluator is trusted alone."
        )


def limit_lines(found: Recommendation) -> Iterator[str]:
    """Which limit is broken by what, on the questions kept apart."""
    if found.broken:
        yield f"Your thresholds break the limit: {found.broken}."
    if found.misses:
        yield f"No pair that was found keeps the limit. This one comes nearest: {found.misses}."


def _describe_plateau(found: Recommendation, plateau: Plateau, names: Names) -> str:
    count = int(plateau.cells.sum())
    spans = [plateau.span(axis) for axis in (0, 1)]
    if plateau.is_everywhere:
        return "On the questions they were chosen on, all thresholds do equally well: none is preferred."
    if found.guaranteed:
        start = "Without the promise, on the questions that the order was chosen on,"
    elif found.weight < 1.0:
        start = (
            f"They lie {found.weight:.0%} of the way from the shipped thresholds to the middle of a plateau. On the "
            "questions it was chosen on,"
        )
    elif count == 1:
        return "They alone are best on the questions they were chosen on."
    else:
        start = "They are the middle of a plateau. On the questions they were chosen on,"
    (low, high), (first, last) = spans
    every = "" if count == (high - low + 1) * (last - first + 1) else ", though not in every combination"
    ends = ((float(found.grid[begin]), float(found.grid[end])) for begin, end in spans)
    reach = " and ".join(f"{name} {_span(one)}" for name, one in zip(names, ends, strict=True))
    return f"{start} all thresholds do as well with {reach}{every}."


def _span(ends: tuple[float, float]) -> str:
    first, last = readable(*ends)
    return f"of {first}" if ends[0] == ends[1] else f"from {first} to {last}"


def compared_rows(found: Recommendation, names: Names = NAMES) -> list[dict[str, str]]:
    """By title: the recommended thresholds first, then others, on the same questions."""
    titles = {field: title for field, title, _ in _RATES}
    return [
        {"Thresholds": one.name}
        | {name.capitalize(): value for name, value in zip(names, readable(one.lower, one.upper), strict=True)}
        | {titles[field]: _share(getattr(one.rates, field)) for field in _COMPARED}
        | {"Cost": f"{one.cost:.2f}", "Costs more than the first": describe_saved(one.saved, 2) if one.saved else "–"}
        for one in found.compared
    ]


def describe_saved(saved: Estimate, digits: int) -> str:
    """Without an interval where every question costs the same under both."""
    value, *ends = (f"{one:+z.{digits}f}" for one in (saved.value, saved.low, saved.high))
    return f"{value} ({' to '.join(ends)})" if saved.has_interval else value


def compared_on(found: Recommendation) -> str:
    if not found.compared:
        return ""
    rates = found.compared[0].rates
    return f"on {counted(found.judged_on, 'held-out question')}, {rates.answerable} of them answerable; 95% intervals"


def compared_scores(
    board: Board, lower: float, upper: float
) -> tuple[tuple[str, Array, tuple[tuple[str, float], ...]], ...]:
    """The numbers that are compared with a threshold: what each is, its values by question, and its thresholds by
    name."""
    known = board.deciding(lower)
    if bool((abs(known.upper - known.lower) > 0).any()):  # they are compared with different numbers
        first, second = threshold_names(board.policy)
        return (f"Score against {second}", known.upper, ((second, upper),)), (
            f"Score against {first}", known.lower, ((first, lower),)
        )  # fmt: skip
    name = "weighted sum" if board.policy.score == "signals" else "deciding score"
    return ((f"The {name}", known.upper, (("lower", lower), ("upper", upper))),)


def _share(share: Estimate | None) -> str:
    return f"{share.value:.1%} ({_interval(share)})" if share else "not measured"


def _interval(share: Estimate) -> str:
    return f"{100 * share.low:.1f}–{share.high:.1%}"


def describe_pair(lower: float, upper: float, names: Names = NAMES) -> str:
    return " and ".join(f"{name} {value}" for name, value in zip(names, readable(lower, upper), strict=True))
