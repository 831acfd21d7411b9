"""A run filter as SQL conditions; loads SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, exists, or_

from crag_core.storage.history.run_columns import folded, storable
from crag_core.storage.history.run_filter import Feedback, Selection
from crag_core.storage.history.schema import LABELS, RUNS
from crag_core.trace.feedback import About, Mark

_SAID = {
    Feedback.ROUTE_RIGHT: (About.ROUTE, Mark.RIGHT),
    Feedback.ROUTE_WRONG: (About.ROUTE, Mark.WRONG),
    Feedback.ANSWER_RIGHT: (About.ANSWER, Mark.RIGHT),
    Feedback.ANSWER_WRONG: (About.ANSWER, Mark.WRONG),
}


def matching(selection: Selection) -> tuple[ColumnElement[bool], ...]:
    """All of which have to hold. Every value goes in as a parameter."""
    return tuple(_conditions(selection))


def _conditions(wanted: Selection) -> Iterator[ColumnElement[bool]]:
    if wanted.actions:
        yield RUNS.c.action.in_([action.value if action else "" for action in wanted.actions])
    if wanted.policies:
        yield RUNS.c.policy.in_([storable(name) for name in wanted.policies])
    if wanted.endings:
        yield RUNS.c.ending.in_([ending.value for ending in wanted.endings])
    if wanted.feedback:
        yield or_(*map(_was_said, wanted.feedback))
    if wanted.since is not None:
        yield RUNS.c.kept_at >= wanted.since
    if wanted.until is not None:
        yield RUNS.c.kept_at < wanted.until
    if wanted.text:
        yield RUNS.c.searched_text.contains(folded(wanted.text), autoescape=True)
    if wanted.asked_by is not None:
        yield RUNS.c.asked_by == storable(wanted.asked_by)
    if wanted.ids is not None:
        yield RUNS.c.id.in_(wanted.ids)
    if wanted.imported is not None:
        yield RUNS.c.imported.is_(wanted.imported)


def _was_said(feedback: Feedback) -> ColumnElement[bool]:
    of_run = LABELS.c.run_id == RUNS.c.id
    if feedback is Feedback.NONE:
        return ~exists().where(of_run)
    about, mark = _SAID[feedback]
    return exists().where(of_run, LABELS.c.about == about.value, LABELS.c.mark == mark.value)
