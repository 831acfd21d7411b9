"""Labelled questions: a question with its expected route; those that occur more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

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


@dataclass(frozen=True)
class UnlabelledQuestion:
    """Waits for a label; its key is that of the labelled question which it becomes. `log`, `record`: as there."""

    question: str
    log: str = ""
    record: str = ""
    without: ClassVar[str] = ""

    @cached_property
    def key(self) -> str:
        return _key_of(self)


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
        optional = ("log", "record", "collection")
        return {name: value for name, value in to_plain(self).items() if value or name not in optional}


Gradable = LabelledQuestion | UnlabelledQuestion
"""Grading asks nothing of a label."""


def _key_of(asked: Gradable) -> str:
    """Two records of a log may ask the same question with other chunks."""
    recorded = (asked.log, asked.record) if asked.log else ()
    return fingerprint((asked.question, asked.without, *recorded))


@dataclass(frozen=True)
class LabelledSet:
    """Questions in order, each once by its key."""

    name: str
    questions: tuple[LabelledQuestion, ...]

    def __post_init__(self) -> None:
        if len({question.key for question in self.questions}) < len(self.questions):
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

    def having(self, question: LabelledQuestion) -> LabelledSet:
        """With the question, in place of an earlier one of the same key."""
        by_key = {one.key: one for one in self.questions} | {question.key: question}
        return replace(self, questions=tuple(by_key.values()))

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


@dataclass(frozen=True)
class Settled:
    """`questions` each once, by their keys, in the order in which they first came.

    `repeated` are the rows that say the same as one before them. `contradictions` are the rows that label one question
    differently, in order; none of them is kept.
    """

    questions: tuple[LabelledQuestion, ...]
    repeated: tuple[int, ...]
    contradictions: tuple[dict[int, Expected], ...]


def settle(rows: Iterable[tuple[int, LabelledQuestion]]) -> Settled:
    """Of questions that say the same, the first is kept, with the answers of all, and a document and note of any."""
    found: dict[str, dict[int, LabelledQuestion]] = {}
    for row, asked in rows:
        found.setdefault(asked.key, {})[row] = asked
    kept, repeated, contradictions = [], list[int](), []
    for same in found.values():
        first, *others = same.values()
        if any(one.expected is not first.expected for one in others):
            contradictions.append({row: one.expected for row, one in same.items()})
            continue
        for one in others:
            answers = tuple(dict.fromkeys((*first.answers, *one.answers)))
            document, note = first.document or one.document, first.note or one.note
            first = replace(first, answers=answers, document=document, note=note)
        kept.append(first)
        repeated += list(same)[1:]
    return Settled(tuple(kept), tuple(sorted(repeated)), tuple(contradictions))
