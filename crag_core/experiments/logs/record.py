"""A log of another system: questions with the chunks that it retrieved, its answers, and what is known to be right."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import fingerprint, from_plain, to_plain
from crag_core.base.types.passages import UNNAMED, Logged, Passage
from crag_core.experiments.labelled.questions import Expected, UnlabelledQuestion

FOUND_BY = "log"
"""Who found the chunks of a log, and the name of their score, on that system's scale: no threshold reads it."""


@dataclass(frozen=True)
class Context:
    """A retrieved chunk: `score` is on the scale of whoever retrieved it, None where the log has none."""

    text: str
    id: str = ""
    source: str = ""
    score: float | None = None
    page: int | None = None


@dataclass(frozen=True)
class LogRecord:
    """One question; `id` is its own in the log, and `row` the place in the file that it was read from.

    `contexts` are in rank order. `answer` is the system's, "" where the log has none. `references` are right answers,
    any of which will do; `reference_contexts` are texts that hold one, `reference_ids` ids of chunks that do.
    `expected` is what somebody has labelled.
    """

    id: str
    row: int
    question: str
    contexts: tuple[Context, ...] = ()
    answer: str = ""
    references: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] = ()
    reference_ids: tuple[str, ...] = ()
    expected: Expected | None = None


@dataclass(frozen=True)
class RetrievalLog:
    """Records in their order, each with an id of its own. `shape` is the name of what it was read as."""

    name: str
    shape: str
    records: tuple[LogRecord, ...]

    @cached_property
    def fingerprint(self) -> str:
        """Another one wherever a chunk is another: what grades depend on."""
        return fingerprint([(one.id, one.question, one.contexts) for one in self.records])

    @cached_property
    def gradable(self) -> tuple[UnlabelledQuestion, ...]:
        """Every record, as grading asks for it."""
        return tuple(UnlabelledQuestion(one.question, self.name, one.id) for one in self.records)

    def to_jsonl(self) -> str:
        """In ASCII; `parse_log` gives the same log."""
        lines = ({"shape": self.shape}, *map(to_plain, self.records))
        return "".join(f"{json.dumps(line)}\n" for line in lines)

    def find(self, record_id: str) -> LogRecord | None:
        return self._by_id.get(record_id)

    @cached_property
    def _by_id(self) -> dict[str, LogRecord]:
        return {one.id: one for one in self.records}


def parse_log(name: str, content: bytes) -> RetrievalLog:
    """A kept log; raises `BadRecord` for a file that is none, or that another version wrote."""
    try:
        head, *lines = (json.loads(line) for line in content.decode("utf-8").splitlines() if line.strip())
        return RetrievalLog(name, str(head["shape"]), tuple(from_plain(LogRecord, line, "record") for line in lines))
    except (BadRecord, ValueError, KeyError, TypeError, RecursionError) as error:
        told = error.message if isinstance(error, BadRecord) else type(error).__name__
        raise BadRecord(
            f"The log {name!r} cannot be read: {told}", hint="Delete it, and import the log again."
        ) from error


def passages_of(record: LogRecord) -> tuple[Passage, ...]:
    """The chunks as a run takes them, each under an id of its own: that of the log where it has one."""
    found: dict[str, Passage] = {}
    for number, one in enumerate(record.contexts, start=1):
        id_ = one.id if one.id and one.id not in found else f"{one.id or 'chunk'} {number}"
        while id_ in found:
            id_ += "'"
        scores = () if one.score is None else ((FOUND_BY, one.score),)
        found[id_] = Passage(
            id_, one.text, one.source or UNNAMED, page=one.page, ordinal=number - 1, found_by=(FOUND_BY,), scores=scores
        )
    return tuple(found.values())


def logged_of(record: LogRecord, log: str) -> Logged:
    return Logged(log, record.id, record.answer, record.references)
