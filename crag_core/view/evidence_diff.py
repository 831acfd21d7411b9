"""The evidence that two decisions share, and what only one of them uses. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.types import Excerpt, Passage
from crag_core.trace.reroute import Reroute


@dataclass(frozen=True)
class Change:
    """The pieces of one passage, in the order of the evidence."""

    passage: Passage
    kept: tuple[str, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """Pieces are ids of strips, or of a passage that went in whole.

    `kept` and `new` stand in the order of the evidence now, `gone` in that of the evidence then. A passage that went in
    whole on one side, and in strips on the other, counts in strips on both. `reordered`: what is kept stood in another
    order. `changes` has every passage that any piece is of, those of now first.
    """

    kept: tuple[str, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    reordered: bool
    changes: tuple[Change, ...]

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        return ("kept", len(self.kept)), ("gone", len(self.gone)), ("new", len(self.new))


def difference(was: Reroute, now: Reroute) -> Difference:
    """From `was` to `now`, two routes of one record, or of two that hold the same passages."""
    strips: dict[str, list[str]] = {}
    for verdict in (*was.knowledge.verdicts, *now.knowledge.verdicts):
        strips.setdefault(verdict.strip.passage_id, []).append(verdict.strip.id)
    in_strips = {e.passage.id for route in (was, now) for e in route.knowledge.excerpts if e.strip_ids}

    def pieces(excerpt: Excerpt) -> tuple[str, ...]:
        passage_id = excerpt.passage.id
        if excerpt.strip_ids or passage_id not in in_strips:
            return excerpt.strip_ids or (passage_id,)
        return tuple(strips[passage_id])

    # Both sides may tell of a strip; as keys of a dict pieces stand once, in the order of the evidence.
    then = {piece: excerpt.passage for excerpt in was.knowledge.excerpts for piece in pieces(excerpt)}
    after = {piece: excerpt.passage for excerpt in now.knowledge.excerpts for piece in pieces(excerpt)}
    kept = tuple(piece for piece in after if piece in then)
    gone, new = (tuple(p for p in one if p not in other) for one, other in ((then, after), (after, then)))
    of = after | then

    def own(some: tuple[str, ...], passage: Passage) -> tuple[str, ...]:
        return tuple(piece for piece in some if of[piece].id == passage.id)

    return Difference(
        kept,
        gone,
        new,
        reordered=kept != tuple(piece for piece in then if piece in after),
        changes=tuple(
            Change(one, own(kept, one), own(gone, one), own(new, one))
            for one in {passage.id: passage for passage in of.values()}.values()
        ),
    )
