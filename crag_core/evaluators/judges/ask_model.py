"""Asks a language model to grade passages, several a call, with one retry."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from crag_core.base.errors import CragError, ModelUnavailable, Stopped
from crag_core.base.prompts.messages import JUDGED_ROOM, JUDGED_TOGETHER, Prompts, shipped
from crag_core.base.protocols import Cancel, LanguageModel, Messages, Reply
from crag_core.base.reply_parsing import ScoreReply
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Usage
from crag_core.evaluators.shared.parts import EvaluatorParts

Group = tuple[Passage, ...]


@dataclass(frozen=True)
class Inquiry:
    """What a model is asked about at most `batch` passages a call, and how its reply is read.

    `chat` makes the request from question and texts, `schema` the JSON schema of the reply for so many passages, `read`
    one `ScoreReply` a passage from a reply to so many, and `again` the request after a reply that cannot be read.
    """

    batch: int
    chat: Callable[[str, Sequence[str]], Messages]
    schema: Callable[[int], dict[str, Any]]
    read: Callable[[str, int], Sequence[ScoreReply]]
    again: Callable[[Messages, str, str], Messages]

    def grade(
        self, model: LanguageModel, question: str, passages: Sequence[Passage], cancel: Cancel
    ) -> tuple[Grade, ...]:
        """One grade a passage, in order; a call's usage lies on the first grade of its group, so that sums are right.

        A reply in which any score cannot be read is asked for once more with the failure named; what stays unreadable
        is ungraded. When the server is away its passages are ungraded and `retryable`. Raises `Stopped`.
        """
        groups = _split(passages, self.batch)
        chats = [self.chat(question, [passage.text for passage in group]) for group in groups]
        grades = self._ask(model, groups, dict(enumerate(chats)), cancel)
        second = {
            place: self.again(chats[place], message[0].raw or "", _failure(message))
            for place, message in grades.items()
            if any(grade.score is None and not grade.retryable for grade in message)
        }
        for place, message in self._ask(model, groups, second, cancel).items():
            grades[place] = _joined(grades[place], message)
        return tuple(grade for place in range(len(groups)) for grade in grades[place])

    def _ask(
        self, model: LanguageModel, groups: list[Group], chats: dict[int, Messages], cancel: Cancel
    ) -> dict[int, tuple[Grade, ...]]:
        """The grades of each group that has a chat, by its place; one schema serves the groups of one size."""
        found = {}
        late: CragError | None = None
        for size in sorted({len(groups[place]) for place in chats}, reverse=True):
            alike = [place for place in chats if len(groups[place]) == size]
            started = time.perf_counter()
            replies: list[Reply | Exception] = [late] * len(alike) if late else []
            replies = replies or model.complete_all([chats[place] for place in alike], cancel, self.schema(size))
            # A server that was given up for its time would only be waited for as long again.
            late = next((one for one in replies if isinstance(one, ModelUnavailable) and one.is_late), late)
            each = (time.perf_counter() - started) / (size * len(alike))
            for place, reply in zip(alike, replies, strict=True):
                found[place] = self._read(groups[place], reply, each)
        return found

    def _read(self, group: Group, reply: Reply | Exception, seconds: float) -> tuple[Grade, ...]:
        if isinstance(reply, Exception):
            return failed(group, reply, seconds)
        scores = self.read(reply.text, len(group))
        message = [
            Grade(passage.id, one.score, one.reason, raw=reply.text, cause=one.cause, seconds=seconds)
            for passage, one in zip(group, scores, strict=True)
        ]
        return (replace(message[0], usage=reply.usage), *message[1:])


class ModelEvaluator:
    """Grades as the `inquiry` of its kind asks; `grade` raises `Stopped`."""

    card: ClassVar[EvaluatorCard]

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None) -> None:
        self._model = model
        self._inquiry = self.inquiry(prompts or shipped())

    @classmethod
    def build(cls, parts: EvaluatorParts) -> Self:
        return cls(parts.model_for(cls.card.name), parts.prompts)

    @classmethod
    def inquiry(cls, prompts: Prompts) -> Inquiry:
        raise NotImplementedError

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        return self._inquiry.grade(self._model, question, passages, cancel)


def failed(group: Sequence[Passage], error: Exception, seconds: float = 0.0) -> tuple[Grade, ...]:
    """The passages of one call that failed, to be asked about again; raises `Stopped`, and what is no `CragError`."""
    if isinstance(error, Stopped) or not isinstance(error, CragError):
        raise error
    cause, kind = str(error), type(error).__name__
    message = [Grade(passage.id, None, cause=cause, retryable=True, seconds=seconds, error=kind) for passage in group]
    return (replace(message[0], usage=Usage(calls=1)), *message[1:])


def _split(passages: Sequence[Passage], most: int) -> list[Group]:
    groups: list[Group] = []
    room = 0
    for passage in passages:
        size = len(passage.text[:JUDGED_TOGETHER].encode("utf-8", "replace"))
        if not groups or len(groups[-1]) == most or size > room:
            groups.append(())
            room = JUDGED_ROOM
        groups[-1] += (passage,)
        room -= size
    return groups


def _failure(message: tuple[Grade, ...]) -> str:
    if len({grade.cause for grade in message}) == 1:
        return message[0].cause
    return "; ".join(f"document {n}: {grade.cause}" for n, grade in enumerate(message, start=1) if grade.cause)


def _joined(first: tuple[Grade, ...], second: tuple[Grade, ...]) -> tuple[Grade, ...]:
    """A second reply that is whole stands; of any other, only the scores that the first lacks are taken."""
    is_whole = all(grade.score is not None for grade in second)
    return tuple(_chosen(one, other, is_whole or one.score is None) for one, other in zip(first, second, strict=True))


def _chosen(first: Grade, second: Grade, takes_second: bool) -> Grade:
    grade = second if takes_second else first
    if grade.score is None:
        raw = f"{first.raw}\n--- asked again ---\n{second.raw or ''}"
        grade = replace(grade, raw=raw, cause=f"{second.cause} (asked twice)")
    return replace(grade, seconds=first.seconds + second.seconds, usage=first.usage + second.usage)
