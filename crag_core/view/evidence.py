"""The evidence of several runs side by side, and what two decisions on one record share. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crag_core.base.types.knowledge import Excerpt, Knowledge, Strip
from crag_core.base.types.passages import Passage
from crag_core.decision.refine import decompose
from crag_core.trace.reroute import Reroute
from crag_core.view.sentences import shown_text


@dataclass(frozen=True)
class Difference:
    """Pieces are ids of strips, or of a passage that went in whole.

    `kept` and `new` stand in the order of the evidence now, `gone` in that of the evidence then. A passage that went in
    whole on one side, and in strips on the other, counts in strips on both. `reordered`: what is kept stood in another
    order.
    """

    kept: tuple[str, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    reordered: bool

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
    return Difference(kept, gone, new, reordered=kept != tuple(piece for piece in then if piece in after))


# --- side by side -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A sentence of `passage` as it is shown; `held` tells for each run whether it reached the answer.

    Passages of one document overlap: what stands in two of them is one sentence, of the first of them.
    """

    passage: Passage
    index: int
    text: str
    held: tuple[bool, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.held)) > 1


def side_by_side(knowledge: Sequence[Knowledge]) -> tuple[Line, ...]:
    """Every sentence that some run gave its answer to read.

    Passages stand in the order in which the runs name them, the first run's first; their sentences in that of the text.
    """
    given = [frozenset(_sentences(one.excerpts)) for one in knowledge]
    passages = {excerpt.passage.id: excerpt.passage for one in knowledge for excerpt in one.excerpts}
    lines: dict[tuple[str, str], Line] = {}
    for passage in passages.values():
        for strip in decompose(passage):
            sentence = _sentence(passage, strip)
            held = tuple(sentence in one for one in given)
            if any(held):
                lines.setdefault(sentence, Line(passage, strip.index, shown_text(strip, passage), held))
    return tuple(lines.values())


def _sentences(excerpts: Iterable[Excerpt]) -> Iterable[tuple[str, str]]:
    """Of a passage that went in whole, or cut, those that stand in its text."""
    for excerpt in excerpts:
        chosen = set(excerpt.strip_ids)
        for strip in decompose(excerpt.passage):
            if strip.id in chosen or (not chosen and strip.text in excerpt.text):
                yield _sentence(excerpt.passage, strip)


def _sentence(passage: Passage, strip: Strip) -> tuple[str, str]:
    """What makes it another one: its document, and its words."""
    return passage.document_id or passage.id, " ".join(strip.text.split())
