"""Projects the vectors of all passages onto their first two principal components, for the map of the corpus.

What is apart on the map is apart; what is together may be far apart in the directions that are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from crag_core.base.documents import MapPoint, PassageMap
from crag_core.retrieval.backends.backend import Hit
from crag_core.retrieval.index.store import PassageStore

if TYPE_CHECKING:
    import numpy as np

MOST_POINTS = 5_000
_MOST_KEPT = 4


@dataclass(frozen=True)
class Plane:
    """`axes` has two rows of unit length; `share` is their share of the variance of the vectors, 0..1."""

    middle: np.ndarray
    axes: np.ndarray
    share: float

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """(n, dimensions) to (n, 2)."""
        projected: np.ndarray = (vectors - self.middle) @ self.axes.T
        return projected


def find_plane(vectors: np.ndarray) -> Plane:
    """By the eigenvectors of the covariance of (n, dimensions) vectors, n at least 1; the same for the same vectors."""
    import numpy as np

    middle = vectors.mean(axis=0)
    centred = (vectors - middle).astype(np.float64)
    values, columns = np.linalg.eigh(centred.T @ centred)
    axes = columns[:, ::-1][:, :2].T
    # The sign of an eigenvector is arbitrary; the map must not flip from one start to the next.
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])
    total = float(values.sum())
    share = float(values[::-1][:2].sum()) / total if total > 0 else 1.0
    return Plane(middle, axes * signs[:, None], min(max(share, 0.0), 1.0))


class Maps:
    """Maps of the index or of a collection, kept until documents change; safe to share between threads."""

    def __init__(self, store: PassageStore) -> None:
        self._store = store
        self._kept: dict[str, tuple[Plane, PassageMap]] = {}
        self._lock = Lock()

    def draw(self, collection: str = "") -> PassageMap | None:
        """At most `MOST_POINTS` passages, evenly taken; None for fewer than three. Raises `StoreUnavailable`."""
        found = self._find(collection)
        return found[1] if found else None

    def place(self, question: str, passage_ids: Sequence[str], collection: str = "") -> tuple[MapPoint, ...]:
        """Points of the question (id "") and of passages that are indexed, on the map of `draw`.

        Raises `EmbeddingUnavailable` too.
        """
        import numpy as np

        found = self._find(collection)
        if found is None:
            return ()
        hits = self._store.find_passages(passage_ids)
        asked = np.asarray(self._store.embedder.embed_question(question), dtype=np.float32)
        x, y = found[0].project(asked[None])[0]
        return (MapPoint("", question, "", "", float(x), float(y)), *_points(hits, found[0]))

    def _find(self, collection: str) -> tuple[Plane, PassageMap] | None:
        import numpy as np

        key = f"{collection}|{self._store.fingerprint(collection)}"
        with self._lock:
            if key not in self._kept:
                hits = self._store.sample(MOST_POINTS, collection)
                if len(hits) < 3:
                    return None
                plane = find_plane(np.stack([hit.vector for hit in hits]))
                drawn = PassageMap(_points(hits, plane), self._store.count(collection), plane.share)
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[key] = (plane, drawn)
            return self._kept[key]


def _points(hits: Sequence[Hit], plane: Plane) -> tuple[MapPoint, ...]:
    import numpy as np

    if not hits:
        return ()
    places = plane.project(np.stack([hit.vector for hit in hits]))
    return tuple(
        MapPoint(hit.passage.id, hit.passage.text, hit.passage.source, _where(hit), float(place[0]), float(place[1]))
        for hit, place in zip(hits, places, strict=True)
    )


def _where(hit: Hit) -> str:
    page = f"page {hit.passage.page}" if hit.passage.page else ""
    return " · ".join(filter(None, (page, hit.passage.section)))
