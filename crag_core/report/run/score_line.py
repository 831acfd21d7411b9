"""The score line of a report: bands, thresholds and points laid out for one width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crag_core.base.text.display import against, readable
from crag_core.view.score_line import Line, Picture, Row

WIDTHS = {"wide": 620, "narrow": 300}
"""The least width in pixels at which each layout is shown; nothing overlaps from there on."""

_POINT = 24
_LETTER = 7.5
_TOP, _TICKS, _ROW = 30, 24, 34


class Point(NamedTuple):
    row: Row
    at: float
    y: int
    decides: bool


class Band(NamedTuple):
    """`name` is empty where it does not fit; `action` is empty where the next line decides."""

    action: str
    name: str
    start: float
    width: float


class Mark(NamedTuple):
    """A number that is compared or compared with. `room`: how far a threshold moves without changing the action."""

    kind: str
    label: str
    at: float
    y: int
    room: tuple[float, float] | None = None
    stays: str = ""


@dataclass(frozen=True)
class Drawing:
    """One line of the picture. Places along it are percentages, heights are pixels."""

    layout: str
    title: str
    described: str
    bands: tuple[Band, ...]
    points: tuple[Point, ...]
    marks: tuple[Mark, ...]
    axis: int
    height: int
    is_asked: bool


def drawings_of(made: Picture | None) -> tuple[tuple[Drawing, ...], ...]:
    """Each line in a wide and in a narrow layout; () where nothing has a score."""
    if made is None or all(point.value is None for line in made.lines for point in line.points):
        return ()
    return tuple(tuple(_draw(made, line, layout) for layout in WIDTHS) for line in made.lines)


def _draw(made: Picture, line: Line, layout: str) -> Drawing:
    width = WIDTHS[layout]
    pairs = zip(made.rows, line.points, strict=True)
    known = [(row, point, point.value) for row, point in pairs if point.value is not None]
    lanes = _lanes([value for _, _, value in known], width)
    axis = _TOP + _POINT * (max(lanes, default=0) + 1)
    points = tuple(
        Point(row, _percent(value), axis - _POINT // 2 - _POINT * lane, point.decides)
        for (row, point, value), lane in zip(known, lanes, strict=True)
    )
    marks = tuple(_marks(made, line, axis + _TICKS))
    title = f"{line.title}: {line.question}" if line.part else "Score"
    stays = ". ".join(mark.stays for mark in marks if mark.stays)
    described = f"{title}. {line.compared_text}. {stays}. The table below holds every number."
    height = axis + _TICKS + _ROW * len(marks)
    return Drawing(
        layout, title, described, tuple(_bands(made, line, width)), points, marks, axis, height, line.is_asked
    )


def _percent(value: float) -> float:
    return round(100 * value, 2)


def _lanes(values: Sequence[float], width: int) -> list[int]:
    """How high each point stands so that none covers another: the lowest place that is free."""
    ends: list[float] = []
    lanes = [0] * len(values)
    for index in sorted(range(len(values)), key=lambda index: values[index]):
        at = values[index] * width
        lane = next((lane for lane, end in enumerate(ends) if at - end >= _POINT), len(ends))
        ends[lane : lane + 1] = [at]
        lanes[index] = lane
    return lanes


def _bands(made: Picture, line: Line, width: int) -> Iterator[Band]:
    edges = {"zero": 0.0, "one": 1.0} | {mark.name: mark.value for mark in made.marks}
    for band in line.bands:
        low, high = edges[band.low], edges[band.high]
        fits = len(band.label) * _LETTER + 8 <= (high - low) * width
        yield Band((band.action or "").lower(), band.label if fits else "", _percent(low), _percent(high - low))


def _marks(made: Picture, line: Line, top: int) -> Iterator[Mark]:
    thresholds = [mark for mark in made.marks if mark.name in line.marks]
    values = [mark.value for mark in thresholds]
    texts = readable(*values) if line.compared is None else against(line.compared, *values)[1:]
    for row, (mark, text) in enumerate(zip(thresholds, texts, strict=True)):
        label, room = f"{mark.called} {text}", (_percent(mark.low), _percent(mark.high))
        yield Mark("threshold", label, _percent(mark.value), top + _ROW * row, room, mark.text)
    if line.compared is not None:
        label, y = line.compared_text.partition(",")[0], top + _ROW * len(thresholds)
        yield Mark("compared", label, _percent(line.compared), y)
