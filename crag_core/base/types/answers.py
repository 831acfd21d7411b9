"""What was answered, and what supports it."""

from dataclasses import dataclass, field
from enum import StrEnum

from crag_core.base.types.passages import _check_score
from crag_core.base.types.steps import Usage


class AnswerState(StrEnum):
    COMPLETE = "complete"
    CUT = "cut"
    STOPPED = "stopped"
    FAILED = "failed"
    CANNOT_ANSWER = "cannot answer"

    @property
    def is_unfinished(self) -> bool:
        return self in (AnswerState.CUT, AnswerState.STOPPED, AnswerState.FAILED)


@dataclass(frozen=True)
class Answer:
    """An answer, tied by `context_key` to the action and the excerpts it was written from."""

    text: str
    state: AnswerState
    writer: str
    context_key: str
    message: str = ""
    usage: Usage = field(default_factory=Usage)

    @property
    def shown(self) -> str:
        """The text; of a question that cannot be answered why, in place of a refusal in the model's words."""
        is_refusal = self.state is AnswerState.CANNOT_ANSWER and self.message
        return self.message if is_refusal or not self.text else self.text


@dataclass(frozen=True)
class Support:
    """One sentence of an answer, `answer.text[start:end]`, and what of the evidence stands behind it.

    `score` in 0..1 says how well its best evidence supports it, None when that could not be measured. `pieces` are the
    ids of the strips (or of passages that went in whole) that support it, best first; `cited` are the excerpt numbers
    that the sentence names itself. `spans` stand in records of earlier versions.
    """

    start: int
    end: int
    score: float | None
    pieces: tuple[str, ...] = ()
    cited: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        _check_score(self.score)
        if not 0 <= self.start <= self.end:
            raise ValueError(f"expected 0 <= start <= end, found {self.start} and {self.end}")
