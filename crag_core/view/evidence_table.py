"""The sentences that several runs gave to their answers, each once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crag_core.base.types import Excerpt, Knowledge, Passage, Strip
from crag_core.decision.refine import decompose


@dataclass(frozen=True)
class Line:
    """A sentence of `passage`; `held` tells for each run whether it reached the answer.

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
                lines.setdefault(sentence, Line(passage, strip.index, strip.text, held))
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
