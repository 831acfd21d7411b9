"""The steps of a story. A picture is plain data with a `kind`, by which story.js draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Picture = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """`tone` names a colour: "correct", "ambiguous", "incorrect" or "plain"."""

    action: str
    meaning: str
    tone: str


@dataclass(frozen=True)
class Outcome:
    """What follows from the scores under one position of the bars, in short lines (name, words)."""

    verdict: Verdict
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Score:
    """One chunk on a scale; `value` None: not graded. `decides`: it is the one that was compared with the bar."""

    number: str
    source: str
    value: float | None
    text: str
    decides: bool


@dataclass(frozen=True)
class Scale:
    """All chunks on one scale from 0 to 1. `asks` is the question that the score answers.

    `bars` are thresholds ("lower" or "upper") with `name`, `value` and `text`; `bands` tell what a score between two
    edges means, where an edge is "zero", "one", or the id of a bar. Both are empty before the decision. `overall` is
    the number that was compared, where it is no single chunk's. `more` chunks are not shown.
    """

    asks: str
    scores: tuple[Score, ...]
    bars: tuple[dict[str, Any], ...] = ()
    bands: tuple[dict[str, str], ...] = ()
    overall: float | None = None
    overall_text: str = ""
    more: int = 0


@dataclass(frozen=True)
class Place:
    """A station of the way: "done", "now", "ahead", or "off" where the question does not come by."""

    name: str
    state: str


@dataclass(frozen=True)
class StoryStep:
    """`note` is a sentence in small print, "" for none. `way` tells how far the question has come."""

    id: str
    title: str
    caption: str
    picture: Picture
    note: str = ""
    way: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Story:
    """`tells_ending`: the title gives the ending away, and is shown with it."""

    id: str
    title: str
    question: str
    steps: tuple[StoryStep, ...]
    tells_ending: bool = False
