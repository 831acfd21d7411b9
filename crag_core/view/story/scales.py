"""The scores of a run on scales for a story, with and without the bars that they are compared with."""

from __future__ import annotations

from dataclasses import replace

from crag_core.base.text.display import against, clean, readable, shortened
from crag_core.view.run_view import RunView
from crag_core.view.score_line import Line, Picture, picture
from crag_core.view.score_words import CALLED, NOT_GRADED
from crag_core.view.story.steps import Scale, Score
from crag_core.view.story.words import ASKS

_SINGLE = ("best", "worst", "two_signals")
_SHORT = 40  # characters of a file name
_MOST_ROWS = 8


def scales_of(view: RunView, *, asked: bool = False) -> tuple[Scale, ...]:
    """One scale, or of two signals answering and topical; () where nothing has a score.

    `asked`: only those that the decision looked at. Where a chunk answers, nobody asks for the subject.
    """
    drawn = picture(view)
    return tuple(_scale(view, drawn, line) for line in drawn.lines if line.is_asked or not asked) if drawn else ()


def before_decision(scale: Scale) -> Scale:
    scores = tuple(replace(score, decides=False) for score in scale.scores)
    return Scale(scale.asks, scores, more=scale.more)


def shortened_scale(scale: Scale) -> Scale:
    """With as many rows as a screen has room for: the first, and those that decide."""
    count = len(scale.scores)
    ahead = sorted(range(count), key=lambda at: (not scale.scores[at].decides, at))[:_MOST_ROWS]
    return replace(scale, scores=tuple(scale.scores[at] for at in sorted(ahead)), more=count - len(ahead))


def graded(scale: Scale) -> list[float]:
    return [score.value for score in scale.scores if score.value is not None]


def _scale(view: RunView, drawn: Picture, line: Line) -> Scale:
    values = {mark.name: mark.value for mark in drawn.marks if mark.name in line.marks}
    limits = [values[name] for name in line.marks]
    scores = (
        Score(
            row.number,
            shortened(clean(row.name), _SHORT),
            point.value,
            NOT_GRADED if point.value is None else against(point.value, *limits)[0],
            point.decides,
        )
        for row, point in zip(drawn.rows, line.points, strict=True)
        if not row.is_web and row.edit != "dropped"
    )
    is_own = view.policy.score in _SINGLE and view.routed.decision.rule is None
    overall = None if is_own else line.compared
    return Scale(
        ASKS.get(line.part, line.part),
        tuple(scores),
        tuple(
            {
                "id": name,
                "name": CALLED[name] if line.part else f"{name} bar",
                "value": values[name],
                "text": readable(values[name])[0],
            }
            for name in line.marks
        ),
        tuple(
            {"tone": band.action.lower() if band.action else "plain", "low": band.low, "high": band.high}
            for band in line.bands
        ),
        overall,
        "" if overall is None else against(overall, *limits)[0],
    )
