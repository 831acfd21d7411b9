"""The score line: bands, thresholds and every passage as a numbered point, laid out for one width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crag_core.base.text.numbers import readable
from crag_core.base.types import ANSWERING, TOPICAL, Action, Grade, Origin, Passage
from crag_core.decision.stability import Interval
from crag_core.report.reported_run import Shown, name_of
from crag_core.report.run.verdict import stability_of

WIDTHS = {"wide": 620, "narrow": 300}
"""The least width in pixels at which each layout is shown; nothing overlaps from there on."""

_POINT = 24
_LETTER = 7.5
_TOP, _TICKS, _ROW = 30, 24, 34


@dataclass(frozen=True)
class Point:
    number: str
    title: str
    at: float
    y: int
    is_web: bool
    decides: bool


@dataclass(frozen=True)
class Band:
    """`name` is empty where it does not fit; `action` is empty where the next line decides."""

    action: str
    name: str
    start: float
    width: float


@dataclass(frozen=True)
class Mark:
    """A number that is compared or compared with. `room`: how far a threshold moves without changing the action."""

    kind: str
    label: str
    at: float
    y: int
    room: tuple[float, float] | None = None

    @property
    def is_left(self) -> bool:
        return self.at < 50


@dataclass(frozen=True)
class Line:
    """One picture. Places along the line are percentages, heights are pixels."""

    layout: str
    title: str
    described: str
    bands: tuple[Band, ...]
    points: tuple[Point, ...]
    marks: tuple[Mark, ...]
    axis: int
    height: int
    is_asked: bool


@dataclass(frozen=True)
class _Scale:
    """What one line measures: each passage's number, and the actions between the edges."""

    title: str
    part: str | None
    compared: tuple[str, float] | None
    edges: tuple[float, ...]
    actions: tuple[Action | None, ...]
    thresholds: tuple[tuple[str, float, Interval], ...]
    is_asked: bool = True


def lines_of(shown: Shown) -> tuple[tuple[Line, ...], ...]:
    """For each number that is compared one line, in a wide and in a narrow layout; () where nothing has a score."""
    if not any(grade and grade.score is not None for _, grade in graded_passages(shown)):
        return ()
    return tuple(tuple(_draw(shown, scale, layout) for layout in WIDTHS) for scale in _scales(shown))


def graded_passages(shown: Shown) -> list[tuple[Passage, Grade | None]]:
    """What the decision looked at, and the web results that were graded."""
    web = shown.changed.web.passages if shown.changed.web else ()
    rows = [(passage, shown.changed.grade_of(passage.id)) for passage in shown.routed.decision_path.looked_at]
    graded = ((passage, shown.changed.grade_of(passage.id)) for passage in web)
    return rows + [(passage, grade) for passage, grade in graded if grade is not None]


def _scales(shown: Shown) -> Iterator[_Scale]:
    policy, decision, stable = shown.policy, shown.routed.decision, stability_of(shown)
    lower, upper = ("lower", policy.lower, stable.lower), ("upper", policy.upper, stable.upper)
    if decision.score is None or decision.topical is None:
        overall = None if decision.score is None or decision.rule else ("overall", decision.score)
        edges = (0.0, policy.lower, policy.upper, 1.0)
        actions = (Action.INCORRECT, Action.AMBIGUOUS, Action.CORRECT)
        yield _Scale("Score", None, overall, edges, actions, (lower, upper))
        return
    best = ("best", decision.score)
    answered = f"{ANSWERING.capitalize()}: does it hold the answer?"
    yield _Scale(answered, ANSWERING, best, (0.0, policy.upper, 1.0), (None, Action.CORRECT), (upper,))
    bands = (Action.INCORRECT, Action.AMBIGUOUS)
    is_asked = decision.action is not Action.CORRECT
    about = f"{TOPICAL.capitalize()}: is it on the subject?"
    yield _Scale(about, TOPICAL, ("best", decision.topical), (0.0, policy.lower, 1.0), bands, (lower,), is_asked)


def value_of(grade: Grade | None, part: str | None) -> float | None:
    return None if grade is None else grade.part(part) if part else grade.score


def _draw(shown: Shown, scale: _Scale, layout: str) -> Line:
    width = WIDTHS[layout]
    values = [(passage, value_of(grade, scale.part)) for passage, grade in graded_passages(shown)]
    known = [(passage, value) for passage, value in values if value is not None]
    lanes = _lanes([value for _, value in known], width)
    axis = _TOP + _POINT * (max(lanes, default=0) + 1)
    points = [
        Point(
            number=shown.numbers[passage.id],
            title=f"{shown.numbers[passage.id]}. {name_of(passage)}: {value:.2f}",
            at=round(100 * value, 2),
            y=axis - _POINT // 2 - _POINT * lane,
            is_web=passage.origin is Origin.WEB,
            decides=passage.id in shown.routed.decision.deciding and _made_it(scale, value),
        )
        for (passage, value), lane in zip(known, lanes, strict=True)
    ]
    marks = tuple(_marks(scale, axis + _TICKS))
    height = axis + _TICKS + _ROW * len(marks)
    bands = tuple(_bands(shown, scale, width))
    message = _described(scale, points)
    return Line(layout, scale.title, message, bands, tuple(points), marks, axis, height, scale.is_asked)


def _made_it(scale: _Scale, value: float) -> bool:
    """Of two signals a deciding passage may have made the other number."""
    return scale.part is None or (scale.compared is not None and value == scale.compared[1])


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


def _bands(shown: Shown, scale: _Scale, width: int) -> Iterator[Band]:
    for action, low, high in zip(scale.actions, scale.edges, scale.edges[1:], strict=False):
        name = shown.policy.route(action).label if action else "see the next line"
        fits = len(name) * _LETTER + 8 <= (high - low) * width
        yield Band((action or "").lower(), name if fits else "", round(100 * low, 2), round(100 * (high - low), 2))


def _marks(scale: _Scale, top: int) -> Iterator[Mark]:
    rows: list[tuple[str, str, float, Interval | None]] = []
    rows += [("threshold", name, value, interval) for name, value, interval in scale.thresholds]
    if scale.compared:
        rows.append(("compared", *scale.compared, None))
    others = [value for _, _, value, _ in rows]
    for row, (kind, name, value, interval) in enumerate(rows):
        message = readable(value, *others)[0]
        room = (round(100 * interval.low, 2), round(100 * interval.high, 2)) if interval else None
        yield Mark(kind, f"{name} {message}", round(100 * value, 2), top + _ROW * row, room)


def _described(scale: _Scale, points: Sequence[Point]) -> str:
    against = ", ".join(f"{name} {value:.2f}" for name, value, _ in scale.thresholds)
    compared = f" The number compared is {scale.compared[0]} {scale.compared[1]:.2f}." if scale.compared else ""
    return f"{scale.title}. {len(points)} points against {against}.{compared} The table below holds every number."
