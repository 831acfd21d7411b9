"""Documents as the index lists them, and what it reports while it takes files in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MAIN = "main"
"""The collection of documents that nobody put into another."""


class State(StrEnum):
    WAITING = "waiting"
    INDEXING = "indexing"
    INDEXED = "indexed"
    REFUSED = "refused"
    MOVING = "being moved"
    LEAVING = "being removed"


@dataclass(frozen=True)
class Document:
    """`id` is the beginning of the SHA-256 of the file's bytes, of which there are `size`; 0 where they were not kept.

    `pages` is 0 in formats without pages. `version` counts the contents that this name has had, from 1. `changed_at`
    is an ISO time in UTC; of an indexed document, when it was indexed. `owner` is the process at work on it. A refused
    one has the reason in `message` and what to do in `hint`.
    """

    id: str
    name: str
    collection: str = MAIN
    state: str = State.WAITING
    pages: int = 0
    passages: int = 0
    characters: int = 0
    size: int = 0
    version: int = 1
    changed_at: str = ""
    owner: str = ""
    message: str = ""
    hint: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it can be searched."""
        return self.state in (State.INDEXED, State.MOVING)

    @property
    def is_under_way(self) -> bool:
        return self.state in (State.WAITING, State.INDEXING)

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.changed_at)


class IngestOutcome(StrEnum):
    INDEXED = "indexed"
    ALREADY = "already indexed"
    REPLACED = "replaced the older version"
    REFUSED = "refused"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Ingested:
    """What became of one file. `message` and `hint` are for people; `document_id` is "" for one that did not get in."""

    name: str
    outcome: IngestOutcome
    document_id: str = ""
    passages: int = 0
    message: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Progress:
    """File `position` (from 1) of `total`; so many of its `passages` are `embedded`, both 0 while it is read."""

    name: str
    position: int
    total: int
    embedded: int = 0
    passages: int = 0


@dataclass(frozen=True)
class MapPoint:
    """A passage in the plane, by the name of its document; `where` is its page and headings."""

    id: str
    text: str
    name: str
    where: str
    x: float
    y: float


@dataclass(frozen=True)
class PassageMap:
    """Points for some or all of `passages`; `share` is what the plane holds of the variance of their vectors, 0..1."""

    points: tuple[MapPoint, ...]
    passages: int
    share: float


OnProgress = Callable[[Progress], None]
