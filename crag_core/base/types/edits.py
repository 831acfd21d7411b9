"""What a user changed of the evidence."""

from dataclasses import dataclass

from crag_core.base.types.passages import Scores


@dataclass(frozen=True)
class Edits:
    """What somebody changed about the evidence of a run, to see what would have happened.

    `dropped` and `pinned` are ids of passages, of the corpus or the web. A dropped passage counts as never found. A
    pinned one counts as graded 1.0, and each of its strips as scored 1.0. `signals` are those of the first retrieval,
    measured again without the dropped passages.
    """

    dropped: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    signals: Scores = ()

    def __post_init__(self) -> None:
        both = set(self.dropped) & set(self.pinned)
        if both:
            raise ValueError(f"a chunk is either dropped or pinned, found both: {', '.join(sorted(both))}")

    def __bool__(self) -> bool:
        return bool(self.dropped or self.pinned)
