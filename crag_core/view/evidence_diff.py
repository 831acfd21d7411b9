"""The evidence that two decisions share, and what only one of them uses. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.types import Action, Excerpt, Passage
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

    action_then: Action
    action_now: Action
    kept: tuple[str, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    reordered: bool = False
    changes: tuple[Change, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return self.action_then is not self.action_now or bool(self.gone or self.new) or self.reordered

    @property
    def summary(self) -> str:
        """ "2 sentences gone, 1 new; AMBIGUOUS instead of CORRECT"."""
        if not self:
            return "nothing changes"
        turned = self.action_then is not self.action_now
        action = f"{self.action_now} instead of {self.action_then}" if turned else f"{self.action_now} as before"
        return f"{self._evidence}; {action}"

    @property
    def _evidence(self) -> str:
        if not (self.gone or self.new):
            same = "the same evidence" if self.kept else "still no evidence"
            return f"{same}, in another order" if self.reordered else same
        gone, new = self._count(self.gone), self._count(self.new)
        if len(gone) == 1 and gone.keys() == new.keys():
            unit = next(iter(gone))
            return f"{_amount(gone[unit], unit)} gone, {new[unit]} new"
        message = [f"{_listed(found)} {what}" for found, what in ((gone, "gone"), (new, "new")) if found]
        return ", ".join(message)

    def _count(self, pieces: tuple[str, ...]) -> dict[str, int]:
        """How many of each unit, sentences first; without those of which there are none."""
        whole = {change.passage.id for change in self.changes}
        passages = sum(piece in whole for piece in pieces)
        counted = {"sentence": len(pieces) - passages, "chunk": passages}
        return {unit: count for unit, count in counted.items() if count}


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
    return Difference(
        was.decision.action,
        now.decision.action,
        kept,
        gone,
        new,
        reordered=kept != tuple(piece for piece in then if piece in after),
        changes=_by_passage(after | then, kept, gone, new),
    )


def _by_passage(
    of: dict[str, Passage], kept: tuple[str, ...], gone: tuple[str, ...], new: tuple[str, ...]
) -> tuple[Change, ...]:
    passages = {passage.id: passage for passage in of.values()}

    def own(pieces: tuple[str, ...], passage_id: str) -> tuple[str, ...]:
        return tuple(piece for piece in pieces if of[piece].id == passage_id)

    return tuple(Change(passages[p], own(kept, p), own(gone, p), own(new, p)) for p in passages)


def _listed(counted: dict[str, int]) -> str:
    return " and ".join(_amount(count, unit) for unit, count in counted.items())


def _amount(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
