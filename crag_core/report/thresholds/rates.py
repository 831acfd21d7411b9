"""What chosen thresholds do to the questions: the way that each takes, and how often it is the wrong one."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.text.display import counted
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.thresholds.rates import confusion
from crag_core.report.thresholds.result import Tuned
from crag_core.report.thresholds.trust import describe_interval

LABELS = {
    Expected.CORRECT: "The documents answer it",
    Expected.AMBIGUOUS: "They are about it, but do not answer it",
    Expected.INCORRECT: "They are about something else",
    Expected.UNANSWERABLE: "They do not answer it; nothing more was said",
}
_RATES = (
    (
        "confidently_wrong",
        "Confidently wrong",
        "Of the questions that the documents do not answer: taken for answered all the same. An answer that nothing "
        "supports may follow.",
    ),
    (
        "needless_web",
        "Needless web",
        "Of the questions that the documents answer: the web is searched all the same. That costs time.",
    ),
    (
        "missed_web",
        "Missed web",
        "Of the questions that the documents do not answer: the web is not searched, so nothing better can be found.",
    ),
    (
        "ungraded",
        "Ungraded",
        "Of all questions: at least one chunk that counts could not be graded, so the decision rests on less.",
    ),
)


@dataclass(frozen=True)
class RateFigure:
    """`value` is "" where nothing was measured."""

    value: str
    name: str
    interval: str
    meaning: str


def routes_of(tuned: Tuned) -> list[tuple[Expected, list[int], int]]:
    """By label, those that occur: questions that took each action, and those that search the web."""
    board = tuned.board
    searched = board.web[range(len(board)), tuned.actions]
    counts = zip(Expected, confusion(board, tuned.actions).tolist(), strict=True)
    return [
        (expected, taken, int(searched[board.expected == place].sum()))
        for place, (expected, taken) in enumerate(counts)
        if any(taken)
    ]


def describe_web(tuned: Tuned) -> str:
    if not tuned.board.web.any():
        return "This policy searches the web for none of them."
    return "The web is searched only where that is allowed."


def rates_of(tuned: Tuned) -> tuple[RateFigure, ...]:
    return tuple(_rate(tuned, *one, getattr(tuned.rates, one[0])) for one in _RATES)


def _rate(tuned: Tuned, field: str, name: str, meaning: str, share: Estimate | None) -> RateFigure:
    if share is None:
        return RateFigure("", name, "No such question.", meaning)
    among = {"needless_web": tuned.answerable, "ungraded": len(tuned.board)}.get(field, tuned.unanswerable)
    hits = round(share.value * among)
    return RateFigure(f"{share.value:.1%}", name, f"{hits} of {among}; 95%: {describe_interval(share)}", meaning)


def describe_rates(tuned: Tuned) -> str:
    if not tuned.rates.questions:
        return "There is no question to count."
    text = (
        f"Counted over the {counted(len(tuned.board), 'question')} judged here. A share that is seen in some questions "
        "is not exact: the interval below it holds the true one in 95% of cases, if later questions are like these."
    )
    if tuned.is_recommended and tuned.found.guaranteed:
        text += " The same questions had a part in choosing the thresholds, which flatters the shares."
    elif tuned.is_recommended:
        text += (
            f" Among them are the {tuned.found.chosen_on} that the thresholds were chosen on, which flatters the "
            "shares; the table further down is of the others alone."
        )
    return text


def describe_effort(tuned: Tuned) -> str:
    rates, prices = tuned.rates, tuned.prices
    return (
        f"A question is expected to take {rates.seconds:.1f} s and {rates.calls:.1f} model calls: retrieval and "
        f"grading as measured, {prices.call_seconds:g} s assumed for every later call and {prices.web_seconds:g} s "
        "for a web search."
    )
