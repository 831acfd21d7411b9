"""Labelled questions: a question with its expected route; those that occur more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Protocol

from crag_core.base.serialization import fingerprint, to_plain
from crag_core.base.types.decisions import Action


class Expected(StrEnum):
    """What should become of a question.

    CORRECT: the documents answer it. AMBIGUOUS: they are about it, and do not answer it. INCORRECT: they are about
    something else. UNANSWERABLE: they do not answer it, and which of the two it is was not said.
    """

    CORRECT = "CORRECT"
    AMBIGUOUS = "AMBIGUOUS"
    INCORRECT = "INCORRECT"
    UNANSWERABLE = "UNANSWERABLE"

    @property
    def is_answerable(self) -> bool:
        return self is Expected.CORRECT

    @property
    def actions(self) -> tuple[Action, ...]:
        """The routes that are right."""
        if self is Expected.UNANSWERABLE:
            return Action.AMBIGUOUS, Action.INCORRECT
        return (Action(self.value),)


LABELS = {
    Expected.CORRECT: "The documents answer it",
    Expected.AMBIGUOUS: "They are about it, but do not answer it",
    Expected.INCORRECT: "They are about something else",
    Expected.UNANSWERABLE: "They do not answer it; nothing more was said",
}
"""What a label says of the documents."""

WORDS: dict[Expected, tuple[str, ...]] = {
    Expected.CORRECT: ("answered", "answerable", "documents answer it"),
    Expected.AMBIGUOUS: (
        *("on topic only", "on topic", "on topic, not answered", "on the subject", "on the subject, not answered"),
        *("on subject", "nearly answered", "about it"),
    ),
    Expected.INCORRECT: (
        *("off topic", "off corpus", "off the subject", "off subject", "something else", "about something else"),
        "elsewhere",
    ),
    Expected.UNANSWERABLE: ("not answered", "not answerable", "unanswered", "ambiguous or incorrect"),
}
"""The words for a label, the one that is shown first. In a file each of them is read, and so is the label itself."""


def word(expected: Expected) -> str:
    """The one that is shown."""
    return WORDS[expected][0]


ALL = "*"
"""In place of the name of a collection: all documents."""


class Origin(StrEnum):
    UPLOADED = "uploaded"
    FEEDBACK = "feedback"
    DRAFTED = "drafted"
    WRITTEN = "written"
    LOG = "log"


class Gradable(Protocol):
    """What grading asks of a question: nothing of its label."""

    @property
    def question(self) -> str: ...

    @property
    def without(self) -> str: ...

    @property
    def answers(self) -> tuple[str, ...]: ...

    @property
    def log(self) -> str: ...

    @property
    def record(self) -> str: ...

    @property
    def key(self) -> str: ...


def _key_of(asked: Gradable) -> str:
    """Two records of a log may ask the same question with other chunks."""
    recorded = (asked.log, asked.record) if asked.log else ()
    return fingerprint((asked.question, asked.without, *recorded))


@dataclass(frozen=True)
class UnlabelledQuestion:
    """Waits for a label; its key is that of the labelled question which it becomes. `log`, `record`: as there."""

    question: str
    log: str = ""
    record: str = ""
    without: ClassVar[str] = ""
    answers: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def key(self) -> str:
        return _key_of(self)

    @property
    def plain(self) -> dict[str, str]:
        """Ready for JSON."""
        own = {"log": self.log, "record": self.record} if self.log else {}
        return {"question": self.question, **own}


@dataclass(frozen=True)
class LabelledQuestion:
    """`answers` are texts any of which answers the question, `document` is the name of the file that holds one.

    `without`: passages that hold this text count as not indexed, so that a question which they answer becomes one that
    is nearly answered. `origin` says where question and label come from. `log` is the name of a kept log and `record`
    its entry there: the chunks of that entry take the place of the index; "": the index is searched. `collection` is
    what the label speaks of, the name of a collection or `ALL`; "": that was not said.
    """

    question: str
    expected: Expected
    answers: tuple[str, ...] = ()
    document: str = ""
    without: str = ""
    origin: Origin = Origin.UPLOADED
    note: str = ""
    log: str = ""
    record: str = ""
    collection: str = ""

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise ValueError("expected a question, found no text")
        if self.without and self.expected.is_answerable:
            raise ValueError("a question whose chunks are taken away cannot be expected to be answered")

    @cached_property
    def key(self) -> str:
        """Equal where the same passages are graded for the same question, whatever is expected of it."""
        return _key_of(self)

    @property
    def plain(self) -> dict[str, Any]:
        """Ready for JSON, without a log or a collection where there is none."""
        found = dict(to_plain(self))
        for name in ("log", "record", "collection"):
            if not found[name]:
                del found[name]
        return found


@dataclass(frozen=True)
class LabelledSet:
    """Questions in order, each once by its key."""

    name: str
    questions: tuple[LabelledQuestion, ...]

    def __post_init__(self) -> None:
        most = Counter(question.key for question in self.questions).most_common(1)
        if most and most[0][1] > 1:
            raise ValueError("expected each question once")

    @cached_property
    def fingerprint(self) -> str:
        """Another one wherever a question or a label is another."""
        return fingerprint([question.plain for question in self.questions])

    @cached_property
    def collection(self) -> str:
        """The one that all labels speak of which say so; "": it is none, or no single one."""
        said = {one.collection for one in self.questions if one.collection}
        return next(iter(said)) if len(said) == 1 and said != {ALL} else ""

    def elsewhere(self, searched: str) -> str:
        """In words, that labels speak of other documents than those of the collection `searched` ("": all); "": none
        does."""
        others = Counter(one.collection for one in self.questions if one.collection not in ("", searched or ALL))
        if not others:
            return ""
        parts = (f"{count} {'is' if count == 1 else 'are'} of {_named(one)}" for one, count in others.items())
        told = " and ".join(parts)
        return f"Of {len(self.questions)} questions {told}, and {_named(searched)} is searched."

    def find(self, key: str) -> LabelledQuestion | None:
        return next((one for one in self.questions if one.key == key), None)

    def having(self, question: LabelledQuestion) -> LabelledSet:
        """With the question, in place of an earlier one of the same key."""
        known = self.find(question.key)
        if known is None:
            return replace(self, questions=(*self.questions, question))
        return replace(self, questions=tuple(question if one is known else one for one in self.questions))

    def lacking(self, key: str) -> LabelledSet:
        return replace(self, questions=tuple(one for one in self.questions if one.key != key))

    @cached_property
    def counts(self) -> dict[Expected, int]:
        """Questions by what is expected of them, those that occur."""
        found = Counter(question.expected for question in self.questions)
        return {expected: found[expected] for expected in Expected if found[expected]}


def _named(collection: str) -> str:
    return f"the collection “{collection}”" if collection not in ("", ALL) else "the whole index"


# --- questions that occur more than once ------------------------------------------------------------------------------


Contradiction = tuple[tuple[int, Expected], ...]
"""Rows that label one question differently, in order; none of them is kept."""


@dataclass(frozen=True)
class Settled:
    """`questions` each once, by their keys, in the order in which they first came.

    `repeated` are the rows that say the same as one before them.
    """

    questions: tuple[LabelledQuestion, ...]
    repeated: tuple[int, ...]
    contradictions: tuple[Contradiction, ...]


def settle(rows: Iterable[tuple[int, LabelledQuestion]]) -> Settled:
    """Of questions that say the same, the first is kept, with the answers of all."""
    found: dict[str, list[tuple[int, LabelledQuestion]]] = {}
    for row, asked in rows:
        found.setdefault(asked.key, []).append((row, asked))
    kept: list[LabelledQuestion] = []
    repeated: list[int] = []
    contradictions = []
    for same in found.values():
        if len({one.expected for _, one in same}) > 1:
            contradictions.append(tuple((row, one.expected) for row, one in same))
        else:
            kept.append(same[0][1] if len(same) == 1 else _joined([one for _, one in same]))
            repeated += [row for row, _ in same[1:]]
    return Settled(tuple(kept), tuple(sorted(repeated)), tuple(contradictions))


def _joined(same: list[LabelledQuestion]) -> LabelledQuestion:
    """Where the first names no document or note, that of the next one that does."""
    return replace(
        same[0],
        answers=tuple(dict.fromkeys(answer for one in same for answer in one.answers)),
        document=next((one.document for one in same if one.document), ""),
        note=next((one.note for one in same if one.note), ""),
    )
