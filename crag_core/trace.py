"""The record of one run: frozen, complete enough to decide again, and portable as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from crag_core import records
from crag_core.errors import BadRecord
from crag_core.policy import Policy
from crag_core.types import (
    Action,
    Answer,
    Decision,
    EvaluatorCard,
    Excerpt,
    Extraction,
    Grade,
    Passage,
    Scores,
    Step,
    StepState,
    Strip,
    Usage,
    WebSearch,
)

SCHEMA = 1


@dataclass(frozen=True)
class RunSettings:
    """Everything that a run depended on besides the question and the corpus."""

    policy: Policy
    evaluator: EvaluatorCard
    strip_evaluator: EvaluatorCard
    embedding: str
    writer: str
    web_mode: str
    top_k: int
    prompts: str
    version: str


@dataclass(frozen=True)
class Trace:
    """One run, raw facts first. A field that is None was never done; () was done and found nothing.

    `strips` are those of the corpus passages (the web's are in `web`). `decision` and `context` are as taken:
    `context` lists the ids of strips, or of whole passages, in the order in which the answer saw them.
    """

    id: str
    created: str
    question: str
    settings: RunSettings
    schema: int = SCHEMA
    passages: tuple[Passage, ...] | None = None
    signals: Scores = ()
    grades: tuple[Grade, ...] | None = None
    strips: tuple[Strip, ...] | None = None
    decision: Decision | None = None
    extractions: tuple[Extraction, ...] | None = None
    web: WebSearch | None = None
    context: tuple[str, ...] | None = None
    answer: Answer | None = None
    steps: tuple[Step, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Equal for runs made under equal settings."""
        return records.fingerprint(self.settings)

    @property
    def usage(self) -> Usage:
        return sum((step.usage for step in self.steps), Usage())

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def failure(self) -> Step | None:
        """The step at which the run broke off, if its last step did not succeed."""
        last = self.steps[-1] if self.steps else None
        return last if last and last.state in (StepState.FAILED, StepState.STOPPED) else None

    def grade_of(self, passage_id: str) -> Grade | None:
        web = self.web.grades if self.web else ()
        return next((grade for grade in (self.grades or ()) + web if grade.passage_id == passage_id), None)

    def to_dict(self) -> dict[str, Any]:
        return dict(records.to_plain(self))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Trace:
        """Rebuild a trace; `BadRecord` names what does not fit, including a schema from another version."""
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != SCHEMA:
            raise BadRecord(
                f"This run has schema {schema!r}, expected {SCHEMA}.", hint="Export it again with this version."
            )
        trace = records.from_plain(cls, data, "run")
        _check_strips("run.strips", trace.strips or (), trace.passages or ())
        if trace.web:
            _check_strips("run.web.strips", trace.web.strips, trace.web.passages)
        return trace

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Trace:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadRecord(f"This is not a recorded run: not valid JSON ({error}).") from error
        return cls.from_dict(data)


def _check_strips(path: str, strips: tuple[Strip, ...], passages: tuple[Passage, ...]) -> None:
    """Strips are looked up in their passages, so one that stands in none must not come in from outside."""
    texts = {passage.id: passage.text for passage in passages}
    for index, strip in enumerate(strips):
        text = texts.get(strip.passage_id)
        if text is None or text[strip.start : strip.end] != strip.text:
            raise BadRecord(f"{path}[{index}]: this strip does not stand in a passage {strip.passage_id!r} of the run.")


def context_key(question: str, action: Action, excerpts: tuple[Excerpt, ...]) -> str:
    """Ties an answer to what it was written from; the action is part of it, so that no answer outlives its route."""
    seen = tuple((excerpt.passage.id, excerpt.text) for excerpt in excerpts)
    return records.fingerprint((question, action, seen))


def context_ids(excerpts: tuple[Excerpt, ...]) -> tuple[str, ...]:
    return tuple(piece for excerpt in excerpts for piece in (excerpt.strip_ids or (excerpt.passage.id,)))
