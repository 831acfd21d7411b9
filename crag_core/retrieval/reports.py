"""What the store says of itself: outcomes of indexing, progress, documents, hits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from crag_core.types import Passage

if TYPE_CHECKING:
    import numpy as np


class IngestOutcome(StrEnum):
    INDEXED = "indexed"
    ALREADY = "already indexed"
    REPLACED = "replaced the older version"
    REFUSED = "refused"


@dataclass(frozen=True)
class Ingested:
    """What became of one file. `message` and `hint` are for people; `document_id` is "" for a refused one."""

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
class IndexedDocument:
    """`id` is the beginning of the SHA-256 of the file's bytes. `pages` is 0 in formats without pages."""

    id: str
    name: str
    pages: int
    passages: int
    characters: int
    indexed_at: datetime


@dataclass(frozen=True)
class Hit:
    """A passage with its stored vector and the search engine's own score (cosine, or BM25)."""

    passage: Passage
    vector: np.ndarray
    score: float


OnProgress = Callable[[Progress], None]
