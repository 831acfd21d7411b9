"""Recorded runs as the history lists them: their filter, their summary, and the columns beside a record."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any
from unicodedata import normalize

from crag_core.base.errors import BadRecord
from crag_core.base.text.words import storable
from crag_core.base.types.decisions import Action
from crag_core.trace.feedback import About, Mark
from crag_core.trace.summary import Ending, Measured, ending_of, measure
from crag_core.trace.trace import Trace

LONGEST_TEXT = 500
_LONGEST = 300  # characters of a question, or of a name; the record has all
_LONGEST_SEARCHED = 20_000
_MOST = 2**31 - 1  # what a column of integers holds everywhere
_LAST_DAY = 253_370_764_800.0  # 9999-01-01, in seconds since 1970
_SAME = (
    *("id", "created", "question", "policy", "evaluator", "asked_by", "fingerprint", "writer"),
    *("writer_version", "evaluator_version", "embedding", "score", "calls"),
)
_NO_FIGURES: dict[str, Any] = {
    **{"strategy": "", "total_ms": 0.0, "searched": False},
    **dict.fromkeys(("score", "decided_ms", "retrieval_ms", "provider_ms", "improved")),
    **dict.fromkeys(("graded", "ungraded", "cached", "calls", "prompt_tokens", "completion_tokens"), 0),
}


class Feedback(StrEnum):
    """What people said of a run: a value of `About` and one of `Mark`. NONE: nothing, of its passages neither."""

    ROUTE_RIGHT = "route right"
    ROUTE_WRONG = "route wrong"
    ANSWER_RIGHT = "answer right"
    ANSWER_WRONG = "answer wrong"
    NONE = "none"


@dataclass(frozen=True)
class Selection:
    """A run is meant that fits every field; it fits a tuple with any value of it. Empty: whatever it has.

    In `actions` None stands for runs that decided nothing. `since` and `until` are seconds since 1970 of the time when
    it was first kept, the second one excluded. `text` stands in the question or the answer, in capitals or not.
    `asked_by` None: whoever asked; "": asked without sign-in. `ids` None: any; (): none. `imported` None: either.
    Raises `BadRecord` for what no run can fit by its form.
    """

    actions: tuple[Action | None, ...] = ()
    policies: tuple[str, ...] = ()
    endings: tuple[Ending, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    since: float | None = None
    until: float | None = None
    text: str = ""
    asked_by: str | None = None
    ids: tuple[str, ...] | None = None
    imported: bool | None = None

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST_TEXT:
            raise BadRecord(f"Expected at most {LONGEST_TEXT} signs to look for, found {len(self.text)}.")
        if not all(math.isfinite(at) for at in (self.since, self.until) if at is not None):
            raise BadRecord(f"Expected times that can be compared, found {self.since} and {self.until}.")


EVERYTHING = Selection()


@dataclass(frozen=True)
class KeptRun:
    """`question` may be cut short. `action` as taken, None where nothing was decided, and for plain RAG.

    `is_imported`: the record came from a file, so it may be of another installation. `kept_at` is when it
    was first kept, in seconds since 1970. `asked_by` is "" without sign-in. `calls` and `tokens` are what it has paid
    for itself, see `Measured`. `route` and `answer` are what was said of them, `labelled` counts the passages of which
    something was said. `is_readable` is False where an earlier version kept a record that this one could not read when
    it took it over: then the figures are empty.
    """

    id: str
    created: str
    question: str
    action: Action | None
    policy: str
    evaluator: str
    is_imported: bool = False
    kept_at: float = 0.0
    ending: Ending = Ending.DONE
    asked_by: str = ""
    fingerprint: str = ""
    writer: str = ""
    writer_version: str = ""
    evaluator_version: str = ""
    embedding: str = ""
    score: float | None = None
    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0
    route: Mark | None = None
    answer: Mark | None = None
    labelled: int = 0
    is_readable: bool = True


def columns_of(trace: Trace) -> dict[str, Any]:
    settings = trace.settings
    answer = trace.answer.text if trace.answer else ""
    texts = {
        "created": trace.created,
        "question": trace.question,
        "action": trace.decision.verdict.value if trace.decision and trace.decision.verdict else "",
        "policy": settings.policy.name,
        "evaluator": settings.evaluator.name,
        "evaluator_version": settings.evaluator.version,
        "writer": settings.writer,
        "writer_version": settings.writer_version,
        "embedding": settings.embedding,
    }
    return {
        **{name: storable(words)[:_LONGEST] for name, words in texts.items()},
        "searched_text": folded("\n".join(dict.fromkeys((trace.question, trace.asked, answer)))[:_LONGEST_SEARCHED]),
        "fingerprint": trace.fingerprint,
        "ending": ending_of(trace).value,
        "readable": True,
        **_figures(trace),
    }


def folded(words: str) -> str:
    """A text as it is compared: without capitals, and a letter with its accent as one sign."""
    return normalize("NFC", normalize("NFC", storable(words)).casefold())


def kept_run(row: Mapping[str, Any], marks: Collection[tuple[str, str]]) -> KeptRun:
    """`marks`: what was judged of it, and how."""
    judged = {about: Mark(mark) for about, mark in marks if mark in list(Mark)}
    return KeptRun(
        **{name: row[name] for name in _SAME},
        kept_at=_kept_at(row),
        action=_action(row),
        ending=_ending(row),
        is_imported=row["imported"],
        is_readable=row["readable"],
        seconds=row["total_ms"] / 1000,
        tokens=row["prompt_tokens"] + row["completion_tokens"],
        route=judged.get(About.ROUTE),
        answer=judged.get(About.ANSWER),
        labelled=sum(about == About.PASSAGE for about, _ in marks),
    )


def measured_of(row: Mapping[str, Any]) -> Measured:
    made: dict[str, Any] = {"at": _kept_at(row), "action": _action(row), "ending": _ending(row)}
    return Measured(**{field.name: row[field.name] for field in fields(Measured) if field.name not in made}, **made)


def _figures(trace: Trace) -> dict[str, Any]:
    """A record from elsewhere may hold numbers that overflow: then there are no figures."""
    try:
        made = vars(measure(trace, 0.0))
    except ArithmeticError:
        return _NO_FIGURES
    figures = {name: made[name] for name in _NO_FIGURES}
    if any(value in (math.inf, -math.inf) for value in figures.values()):
        return _NO_FIGURES
    return {name: max(min(it, _MOST), -_MOST) if type(it) is int else it for name, it in figures.items()}


def _kept_at(row: Mapping[str, Any]) -> float:
    """A time that a calendar has: a clock can be wrong, and a row damaged."""
    return float(min(max(row["kept_at"], 0.0), _LAST_DAY))


def _action(row: Mapping[str, Any]) -> Action | None:
    return Action(row["action"]) if row["action"] in list(Action) else None


def _ending(row: Mapping[str, Any]) -> Ending:
    return Ending(row["ending"]) if row["ending"] in list(Ending) else Ending.DONE
