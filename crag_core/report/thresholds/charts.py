"""The pictures of chosen thresholds: a hundred questions of either kind, and where the deciding scores lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from crag_core.base.text.display import counted, readable
from crag_core.experiments.statistics.curves import graded, histogram
from crag_core.experiments.thresholds.threshold_board import ACTIONS, Array
from crag_core.report.thresholds.view import Marks, Tuned, compared_scores

_SIDE, _ROW, _TICKS = 76, 20, 20
_LEFT_FROM = {"lower": 30, "upper": 70.01}
"""Percent of the width from where on the name of a threshold stands to the left of its line."""


@dataclass(frozen=True)
class Share:
    """`of_hundred` is in words where a whole number would say none or all, and that is not so."""

    tone: str
    name: str
    of_hundred: str


@dataclass(frozen=True)
class Waffle:
    """One kind of question. `tones` are those of a hundred cells; there are none where no such question was asked."""

    kind: str
    count: int
    shares: tuple[Share, ...]
    tones: tuple[str, ...]
    described: str


@dataclass(frozen=True)
class Bar:
    tone: str
    x: float
    y: float
    height: float
    title: str


@dataclass(frozen=True)
class Mark:
    """A threshold; its name stands to the left of its line or to the right, in a row of its own."""

    label: str
    at: float
    y: int
    is_left: bool


@dataclass(frozen=True)
class Histogram:
    """One score. Places along it are percentages, heights are pixels; `missing` questions have no such score."""

    title: str
    described: str
    bands: tuple[tuple[str, float, float], ...]
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    top: int
    axis: int
    bottom: int
    height: int
    tallest: int
    missing: int
    note: str


# --- of a hundred questions -----------------------------------------------------------------------------------------


def waffles(tuned: Tuned) -> tuple[Waffle, Waffle]:
    """Questions that the documents answer, and those that they do not."""
    yes = tuned.board.answerable
    return _waffle(tuned, "that the documents answer", yes), _waffle(tuned, "that the documents do not answer", ~yes)


def _waffle(tuned: Tuned, kind: str, which: Array) -> Waffle:
    counts = [int((tuned.actions[which] == place).sum()) for place in range(len(ACTIONS))]
    total = sum(counts)
    if not total:
        return Waffle(kind, 0, (), (), "")
    parts = of_hundred(counts)
    shares = tuple(
        Share(one.tone, one.name, _in_words(part, count, total))
        for one, part, count in zip(tuned.outcomes, parts, counts, strict=True)
    )
    tones = tuple(one.tone for one, part in zip(tuned.outcomes, parts, strict=True) for _ in range(part))
    wording = "; ".join(f"{share.of_hundred} {share.name}" for share in shares)
    return Waffle(kind, total, shares, tones, f"Of 100 questions {kind}: {wording}.")


def of_hundred(counts: Sequence[int]) -> tuple[int, ...]:
    """Whole numbers that add up to 100, in the proportions of `counts` (largest remainders)."""
    total = sum(counts)
    parts = [100 * count // total for count in counts]
    rest = sorted(range(len(counts)), key=lambda place: -(100 * counts[place] % total))
    for place in rest[: 100 - sum(parts)]:
        parts[place] += 1
    return tuple(parts)


def _in_words(part: int, count: int, total: int) -> str:
    if count and not part:
        return "fewer than 1"
    return "more than 99" if part == 100 and count < total else str(part)


# --- where the scores lie -------------------------------------------------------------------------------------------


def histograms(tuned: Tuned) -> tuple[Histogram, ...]:
    """One for each number that is compared with a threshold; () where no question has any."""
    lower, upper = tuned.own
    good, fair, bad = (one.tone for one in tuned.outcomes)
    bands: tuple[tuple[tuple[str, float, float], ...], ...]
    bands = (((bad, 0.0, min(lower, upper)), (fair, lower, upper), (good, upper, 1.0)),)
    notes = ("", "It is asked only where the first has not settled it.")
    scores = compared_scores(tuned.board, lower, upper)
    if len(scores) > 1:
        bands = (("", 0.0, upper), (good, upper, 1.0)), ((bad, 0.0, lower), (fair, lower, 1.0))
    found = (_draw(tuned, *one, of, note) for one, of, note in zip(scores, bands, notes, strict=False))
    return tuple(one for one in found if one.tallest)


def _draw(
    tuned: Tuned,
    title: str,
    scores: Array,
    thresholds: Marks,
    bands: tuple[tuple[str, float, float], ...],
    note: str,
) -> Histogram:
    found = histogram(scores, tuned.board.answerable)
    tallest = int(max(found.positive.max(), found.negative.max()))
    top = _ROW * len(thresholds) + 4
    axis = top + _SIDE
    return Histogram(
        title=title,
        described=_described(title, scores, tuned.board.answerable, thresholds),
        bands=tuple((tone, _percent(low), _percent(high - low)) for tone, low, high in bands if high > low),
        bars=tuple(_bars(found.edges.tolist(), found.positive.tolist(), found.negative.tolist(), axis)),
        marks=tuple(_marks(thresholds)),
        top=top,
        axis=axis,
        bottom=axis + _SIDE,
        height=axis + _SIDE + _TICKS,
        tallest=tallest,
        missing=graded(scores, tuned.board.answerable).dropped,
        note=note,
    )


def _bars(edges: list[float], above: list[int], below: list[int], axis: int) -> Iterator[Bar]:
    most = max(*above, *below, 1)
    for place, (low, high) in enumerate(pairwise(edges)):
        for tone, kind, count in (
            ("correct", "answered by the documents", above[place]),
            ("incorrect", "not answered by them", below[place]),
        ):
            if count:
                height = round((_SIDE - 4) * count / most, 1)
                title = f"{low:.2f} to {high:.2f}: {counted(count, 'question')} {kind}"
                yield Bar(tone, _percent(low) + 0.3, axis - height if tone == "correct" else axis, height, title)


def _marks(thresholds: Marks) -> Iterator[Mark]:
    """No line crosses the name of the other: the one whose name would be in the way starts lower."""
    sided = [
        (f"{name} {readable(value)[0]}", _percent(value), _percent(value) >= _LEFT_FROM[name])
        for name, value in thresholds
    ]
    if sided[-1][2]:
        sided.reverse()
    for row, (label, at, is_left) in enumerate(sided):
        yield Mark(label, at, _ROW * row, is_left)


def _described(title: str, scores: Array, yes: Array, thresholds: Marks) -> str:
    against = " and ".join(f"{name} {readable(value)[0]}" for name, value in thresholds)
    sentences = [f"{title}. Held against {against}."]
    for kind, which in (("that the documents answer", yes), ("that they do not answer", ~yes)):
        known = graded(scores[which], yes[which]).scores.tolist()
        if known:
            sentences.append(
                f"{counted(len(known), 'question')} {kind}: scores from {min(known):.2f} to {max(known):.2f}, "
                f"the middle one {median(known):.2f}."
            )
        else:
            sentences.append(f"No question {kind} has a score.")
    return " ".join(sentences)


def _percent(value: float) -> float:
    return round(100 * value, 2)
