"""How a question of a conversation was understood."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Turn:
    """An earlier question of a conversation: the id of its run, the question as it was understood, and what it got.

    `answer` is cut short, "" where there was none; with `asks_back` it is the question that was asked back.
    """

    run: str
    question: str
    answer: str = ""
    asks_back: bool = False


class Understanding(StrEnum):
    OPEN = "not read yet"
    WAITING = "waiting for approval"
    SETTLED = "settled"
    UNSURE = "unsure"
    ASKS_BACK = "asks back"


@dataclass(frozen=True)
class FollowUp:
    """A question of a conversation: as it was `asked`, after which turns, and the one that stands alone in its place.

    `question` is that one, "" until it is made; `by` says by whom. Where nobody makes one (`UNSURE`), it is
    the question before and this one together, by which evidence is found and nothing decided. `asks` is what is asked
    back instead. `note` says why a model's part in it failed. `waits`: somebody is to see the question before anything
    is retrieved.
    """

    asked: str
    history: tuple[Turn, ...] = ()
    outcome: Understanding = Understanding.OPEN
    question: str = ""
    by: str = ""
    asks: str = ""
    note: str = ""
    waits: bool = False

    @property
    def is_changed(self) -> bool:
        return bool(self.question) and self.question != self.asked
