"""What refinement leaves for an answer: strips, extractions, excerpts, and what is consolidated from them."""

from dataclasses import dataclass, field

from crag_core.base.types.passages import Passage, _check_score
from crag_core.base.types.steps import Usage


@dataclass(frozen=True)
class Consolidated:
    """One passage that a language model made of those that agree, in its words.

    `excerpts` are the numbers of its excerpts, `memory` those of the model's own passages, `contradicts` those of other
    consolidated passages, each from 1 and in order.
    """

    text: str
    excerpts: tuple[int, ...] = ()
    memory: tuple[int, ...] = ()
    contradicts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Consolidation:
    """What a language model made of excerpts and of its own knowledge (arXiv 2410.07176).

    `context` are the ids of the strips, or of whole passages, that it was shown. `own` are the passages that it wrote
    from memory, `most` how many it might write. They are no evidence: nothing counts, grades or cites them. `pieces`
    are what both were put together to, () where nothing of them bears on the question. `raw` are its replies as they
    came; `cause` says why they could not be used, "": they could.
    """

    context: tuple[str, ...]
    most: int = 0
    own: tuple[str, ...] = ()
    pieces: tuple[Consolidated, ...] = ()
    raw: str = ""
    cause: str = ""

    @property
    def conflicts(self) -> tuple[tuple[int, int], ...]:
        """Pairs of pieces that contradict each other, by number from 1, the lower one first, each once."""
        told = {(min(n, other), max(n, other)) for n, one in enumerate(self.pieces, 1) for other in one.contradicts}
        return tuple(sorted(told))

    @property
    def from_memory_alone(self) -> tuple[Consolidated, ...]:
        return tuple(one for one in self.pieces if not one.excerpts)


@dataclass(frozen=True)
class Strip:
    """A piece of one to a few sentences: `passage.text[start:end] == text`. `score` as in `Grade`."""

    passage_id: str
    index: int
    start: int
    end: int
    text: str
    score: float | None = None

    def __post_init__(self) -> None:
        _check_score(self.score)

    @property
    def id(self) -> str:
        return f"{self.passage_id}#{self.index}"


@dataclass(frozen=True)
class Extraction:
    """Sentences a language model picked from one passage.

    `strip_indexes` are the strips that the verbatim sentences fall in; `refused` are replies that do not stand in the
    passage word for word and were therefore thrown out.
    """

    passage_id: str
    strip_indexes: tuple[int, ...]
    refused: tuple[str, ...] = ()
    raw: str | None = None
    cause: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class StripVerdict:
    strip: Strip
    kept: bool
    reason: str


@dataclass(frozen=True)
class Excerpt:
    """What of one passage reaches the answer; the n-th excerpt (from 1) is cited as [n].

    `strip_ids` is empty when the passage goes in whole.
    """

    passage: Passage
    text: str
    strip_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Knowledge:
    """The evidence under one policy: internal (corpus) and external (web) kept apart, and every strip's verdict.

    `consolidation`: the answer is written from what a model made of the excerpts and its own knowledge.
    """

    internal: tuple[Excerpt, ...]
    external: tuple[Excerpt, ...]
    verdicts: tuple[StripVerdict, ...]
    notes: tuple[str, ...] = ()
    consolidation: Consolidation | None = None

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        return self.internal + self.external
