"""The vocabulary: frozen records of what a run saw, scored and did.

Nothing here decides or acts. Throughout, `None` means "never done in this run" and `()` means "done, found nothing".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

Scores = tuple[tuple[str, float], ...]
"""Named numbers, in the order in which they are shown."""


def _check_score(score: float | None) -> None:
    if score is not None and not (math.isfinite(score) and 0.0 <= score <= 1.0):
        raise ValueError(f"expected a score in 0..1 or None, found {score}")


class Action(StrEnum):
    CORRECT = "CORRECT"
    AMBIGUOUS = "AMBIGUOUS"
    INCORRECT = "INCORRECT"


class Origin(StrEnum):
    CORPUS = "corpus"
    WEB = "web"


@dataclass(frozen=True)
class Passage:
    """One retrieved piece of a document, or one web result.

    `page` counts from 1. `ordinal` is the passage's place in its document, from 0. `scores` holds what each retriever
    reported (`cosine` is computed by this project, in -1..1; the others are on the retriever's own scale).
    `found_by` names the retrievers that returned it.
    """

    id: str
    text: str
    source: str
    origin: Origin = Origin.CORPUS
    document_id: str = ""
    page: int | None = None
    url: str | None = None
    ordinal: int = 0
    found_by: tuple[str, ...] = ()
    scores: Scores = ()

    def score(self, name: str) -> float | None:
        return dict(self.scores).get(name)


@dataclass(frozen=True)
class Usage:
    """What a step cost: model calls and tokens (0 where the model did not say)."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True)
class Grade:
    """What an evaluator said of one passage.

    `score` lies in 0..1, or is None when the passage could not be graded; then `cause` says why, `raw` holds the reply
    as it came, and `retryable` tells an outage (worth asking again) from an unreadable reply.
    """

    passage_id: str
    score: float | None
    reason: str = ""
    parts: Scores = ()
    raw: str | None = None
    cause: str = ""
    retryable: bool = False
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        _check_score(self.score)


@dataclass(frozen=True)
class EvaluatorCard:
    """What an evaluator declares of itself; thresholds belong to evaluator and corpus, so it brings its own.

    `lower` and `upper` are its default thresholds, `strip_cutoff` the default for strips it scores.
    """

    name: str
    title: str
    scale: str
    lower: float
    upper: float
    strip_cutoff: float
    calls_model: bool
    cost: str


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


class CorrectionKind(StrEnum):
    KEEP = "keep"
    DISCARD = "discard"
    REFINE = "refine"
    REWRITE = "rewrite"
    WEB_SEARCH = "web_search"
    EXPAND = "expand"
    RE_RETRIEVE = "re_retrieve"
    GENERATE = "generate"


@dataclass(frozen=True)
class Correction:
    """One thing that the decision wants done, and why. `passage_id` when it concerns one passage only."""

    kind: CorrectionKind
    reason: str
    passage_id: str | None = None


@dataclass(frozen=True)
class Decision:
    """Where the question goes.

    `score` is the overall score in 0..1 that was compared with the thresholds, None when there was nothing to compare.
    `deciding` holds the ids of the passages that made the score. `rule` names the fast-path rule that decided without
    any grading, if one did.
    """

    action: Action
    label: str
    score: float | None
    reason: str
    plan: tuple[Correction, ...]
    deciding: tuple[str, ...] = ()
    rule: str | None = None

    def wants(self, kind: CorrectionKind) -> bool:
        return any(correction.kind == kind for correction in self.plan)


class WebOutcome(StrEnum):
    USED = "used"
    EMPTY = "empty"
    FAILED = "failed"
    RATE_LIMITED = "rate-limited"
    TIMED_OUT = "timed out"
    OFF = "off"
    PENDING = "waiting for approval"
    APPROVED = "approved, not searched yet"
    REFUSED = "refused by you"


@dataclass(frozen=True)
class WebSearch:
    """The web step: the exact query, who wrote it, and what came back.

    `passages` are the results in the provider's order (origin `web`); `grades` and `strips` are theirs.
    """

    outcome: WebOutcome
    query: str
    query_by: str
    provider: str = ""
    message: str = ""
    passages: tuple[Passage, ...] = ()
    grades: tuple[Grade, ...] = ()
    strips: tuple[Strip, ...] = ()
    from_cache: bool = False


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
    """A strip under one policy: kept or struck out, and why."""

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
    """The evidence under one policy: internal (corpus) and external (web) kept apart, and every strip's verdict."""

    internal: tuple[Excerpt, ...]
    external: tuple[Excerpt, ...]
    verdicts: tuple[StripVerdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        return self.internal + self.external


class AnswerState(StrEnum):
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"
    CANNOT_ANSWER = "cannot answer"


@dataclass(frozen=True)
class Answer:
    """An answer, tied by `context_key` to the action and the excerpts it was written from."""

    text: str
    state: AnswerState
    writer: str
    context_key: str
    message: str = ""
    usage: Usage = field(default_factory=Usage)


class StepState(StrEnum):
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"
    WAITING = "waiting"


@dataclass(frozen=True)
class Step:
    """One entry of the record: what was done, how long it took (seconds) and what it cost."""

    name: str
    summary: str
    state: StepState = StepState.DONE
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    hint: str = ""
