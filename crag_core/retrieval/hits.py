"""Search hits, and ids of documents and passages."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from crag_core.base.types import Passage

if TYPE_CHECKING:
    import numpy as np

DOCUMENT_ID = re.compile(r"[0-9a-f]{32}")
PASSAGE_ID = re.compile(r"[0-9a-f]{32}-\d{1,9}")


@dataclass(frozen=True)
class Hit:
    """A passage with its stored vector and the search engine's own score (cosine, or one for words)."""

    passage: Passage
    vector: np.ndarray
    score: float


def name_content(content: bytes) -> str:
    """The id of a document: the beginning of the SHA-256 of its bytes."""
    return hashlib.sha256(content).hexdigest()[:32]


def now() -> str:
    return datetime.now(UTC).isoformat()
