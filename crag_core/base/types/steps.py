"""What was done, and what it cost: the steps of a run and the calls of a language model."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

NO_END = "no end"  # A stream broke off without the server's word that the reply is over


@dataclass(frozen=True)
class Usage:
    """What a step cost: model calls and tokens (0 where the model did not say).

    `cut`: about so many tokens of evidence were left out, so that the prompts fit into what the model reads at once.
    `ended`: why one reply is not whole, as its server named it ("length", "content_filter"), or `NO_END`; "": it is, or
    its server does not say. A sum has none.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cut: int = 0
    ended: str = ""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cut + other.cut,
        )


@dataclass(frozen=True)
class ModelCall:
    """One request to a language model during the step of that name, and what came of it.

    `messages` are (role, text) pairs, () where the record had no room for them any more. `error` says why there is no
    reply, or no whole one; "": there is. One that never reached its server counts as no call in `usage`.
    """

    step: str
    messages: tuple[tuple[str, str], ...]
    reply: str
    usage: Usage = field(default_factory=Usage)
    error: str = ""


class StepState(StrEnum):
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"
    WAITING = "waiting"


class StepName(StrEnum):
    """The steps of a run, in order; `SECOND_OPINION` may come at any time after it."""

    CONDENSE = "condense"
    CLASSIFY = "classify"
    RETRIEVE = "retrieve"
    GRADE = "grade"
    JUDGE_TOGETHER = "judge together"
    ROUTE = "route"
    RETRIEVE_AGAIN = "retrieve again"
    SCORE_STRIPS = "score strips"
    EXTRACT = "extract"
    REWRITE = "rewrite"
    SEARCH = "search"
    READ_PAGES = "read pages"
    GRADE_WEB = "grade web"
    CONSOLIDATE = "consolidate"
    ASSEMBLE = "assemble"
    ANSWER = "answer"
    CHECK_ANSWER = "check answer"
    SECOND_OPINION = "second opinion"


@dataclass(frozen=True)
class Step:
    """One entry of the record: what was done, how long it took (seconds) and what it cost.

    `error` is the type of the error that a step failed or was skipped for, as `crag_core.base.errors` names it.
    `taken_over`: another run did it, and paid for it. `by` is the name of the evaluator of a step that graded chunks.
    `first_word`: seconds from the last request to the first word shown of a streamed answer, None where none came.
    """

    name: str
    summary: str
    state: StepState = StepState.DONE
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    hint: str = ""
    error: str = ""
    taken_over: bool = False
    by: str = ""
    first_word: float | None = None
