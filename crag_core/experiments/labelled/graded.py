"""A graded labelled question, without texts, and the conditions that it was graded under."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from crag_core.base import serialization
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage, Scores
from crag_core.base.types.steps import Usage
from crag_core.experiments.labelled.questions import Gradable, LabelledQuestion
from crag_core.trace.trace import RunSettings, Trace


@dataclass(frozen=True)
class Conditions:
    """Everything but the question that grades and passages depend on. `writer`, `writer_version` and `prompts` are ""
    for an evaluator that asks no model; `corpus` is the fingerprint of the index."""

    evaluator: str
    evaluator_version: str
    writer: str
    prompts: str
    embedding: str
    top_k: int
    corpus: str
    writer_version: str = ""

    @property
    def fingerprint(self) -> str:
        """Without a version it is what it was before versions of models were known."""
        plain = dict(serialization.to_plain(self))
        if not self.writer_version:
            del plain["writer_version"]
        return serialization.fingerprint(plain)

    def changed(self, now: Conditions) -> tuple[str, ...]:
        """What is another thing now, in words; a version that is not known is no other one."""
        changes = {
            "the evaluator": (self.evaluator, self.evaluator_version) != (now.evaluator, now.evaluator_version),
            "the language model that grades": self.writer != now.writer
            or "" != self.writer_version != now.writer_version != "",
            "the prompts": self.prompts != now.prompts,
            "the embedding model": self.embedding != now.embedding,
            "the number of chunks": self.top_k != now.top_k,
            "the documents": self.corpus != now.corpus,
        }
        return tuple(name for name, is_other in changes.items() if is_other)


def conditions_of(settings: RunSettings, corpus: str) -> Conditions:
    judge = settings.evaluator
    found = Conditions(
        judge.name, judge.version, settings.writer, settings.prompts, settings.embedding, settings.top_k, corpus,
        settings.writer_version,
    )  # fmt: skip
    return found if judge.calls_model else replace(found, writer="", prompts="", writer_version="")


# --- one question -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoredQuestion:
    """One first retrieval and its grades. `key` is that of the labelled question.

    `passages` have no text and `grades` no raw reply: the run `run_id` has both. `seconds` is what retrieval and
    grading took.
    """

    key: str
    run_id: str
    passages: tuple[Passage, ...]
    grades: tuple[Grade, ...] | None
    signals: Scores = ()
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Case:
    asked: LabelledQuestion
    scored: ScoredQuestion


def scored_from(trace: Trace, asked: Gradable) -> ScoredQuestion:
    grades = [replace(grade, reason="", raw=None, cause=grade.cause[:200]) for grade in trace.grades or ()]
    return ScoredQuestion(
        key=asked.key,
        run_id=trace.id,
        passages=tuple(replace(passage, text="") for passage in trace.passages or ()),
        grades=None if trace.grades is None else tuple(grades),
        signals=trace.measured(trace.settings.policy),
        seconds=trace.seconds,
        usage=trace.usage,
    )


def cases(questions: Iterable[LabelledQuestion], scored: Mapping[str, ScoredQuestion]) -> tuple[Case, ...]:
    """Those that were graded, in the order of the questions."""
    return tuple(Case(question, scored[question.key]) for question in questions if question.key in scored)
