"""What the service takes and gives, as its OpenAPI document tells it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from crag_core.app.uploads import whole
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.passages import Origin
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.summary import Ending

LONGEST_QUESTION = 1000
"""Characters, as on the Ask page."""
MOST_CONTEXTS = 100
MOST_CHARACTERS = 100_000
"""Of all contexts together, since each takes time to grade."""
_LONGEST_NAME = 500

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME)]
Question = Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION, pattern=r"\S")]
RunId = Annotated[str, Field(min_length=1, max_length=200, description="The id of a run that is kept in the history.")]

Text = Annotated[str, BeforeValidator(lambda value: whole(value) if isinstance(value, str) else value)]
"""Of documents, models and servers, which may hold anything."""


class RequestBody(BaseModel):
    """A field that is not known is refused: it may be a misspelt one."""

    model_config = ConfigDict(extra="forbid")


class ResponseBody(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True, from_attributes=True)


# --- what is asked ----------------------------------------------------------------------------------------------------


class Thresholds(RequestBody):
    """Left out, each is that of the policy for its evaluator, or the one that the service was started with."""

    policy: Name | None = Field(None, description="The name of a policy, such as two-signal or paper.")
    preset: Name | None = Field(
        None, description="Thresholds of the policy's file, such as conservative, or tuned ones by name."
    )
    lower: Share | None = Field(None, description="Lower threshold.")
    upper: Share | None = Field(None, description="Upper threshold.")
    cutoff: Share | None = Field(None, description="Only sentences scoring above it are kept.")
    sentences: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        None, description="Sentences kept at most; 0: no limit."
    )


class Judged(Thresholds):
    evaluator: Name | None = Field(None, description="Who grades the chunks, such as cross-encoder or llm.")


class QueryRequest(Judged):
    """A question to the indexed documents, or a run that broke off, to be carried on."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "When does the first boat leave?"}]}, extra="forbid"
    )

    query: Question | None = Field(None, description="The question; left out only with `resume`.")
    resume: RunId | None = Field(
        None, description="Carries on this run, which broke off or was stopped: only what is missing is done."
    )
    after: RunId | None = Field(
        None, description="The run of the question before this one in a conversation: this one is understood from it."
    )
    use_crag: bool = Field(True, description="false: plain RAG, which uses what is retrieved as it is, ungraded.")
    use_web_search: bool | None = Field(
        None, description="false: no web search for this question; true asks for what the service was started with."
    )
    top_k: Annotated[int, Field(ge=1, le=20)] | None = Field(None, description="Chunks to retrieve.")
    collection: str = Field("", max_length=_LONGEST_NAME, description="Search only there; empty: everywhere.")
    record: bool = Field(False, description="true: the whole record of the run comes with the answer.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.query is None) == (self.resume is None):
            raise ValueError("expected either query or resume")
        if self.resume is not None and self.after is not None:
            raise ValueError("expected after with query: a run that is carried on has its conversation")
        return self


class Context(RequestBody):
    """One retrieved chunk, as your retriever gave it."""

    text: str = Field(max_length=MOST_CHARACTERS)
    id: Name | None = Field(None, description="Left out: its place in the list, from 1.")
    source: str = Field("", max_length=_LONGEST_NAME, description="The document, for people.")
    score: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        None, description="Your retriever's score, on its own scale; `scores` says if it is a cosine."
    )


class RouteRequest(Judged):
    """Chunks that were retrieved elsewhere. Nothing is searched, generated or indexed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "question": "When does the first boat leave?",
                    "contexts": [
                        {"id": "a", "text": "The first boat leaves at nine.", "source": "timetable.md", "score": 0.71}
                    ],
                }
            ]
        },
        extra="forbid",
    )

    question: Question
    contexts: list[Context] = Field(
        max_length=MOST_CONTEXTS,
        description=f"In rank order, {MOST_CHARACTERS:,} characters together at most; empty: nothing was found.",
    )
    scores: Literal["retriever", "cosine"] = Field(
        "retriever", description="cosine: the scores are cosines of the embedding model that this service is set to."
    )
    keep: bool = Field(False, description="true: the record is kept in the history, under the id of the response.")
    record: bool = Field(False, description="true: the record comes with the decision; /reroute decides it again.")

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        characters = sum(len(one.text) for one in self.contexts)
        if characters > MOST_CHARACTERS:
            raise ValueError(
                f"expected contexts of at most {MOST_CHARACTERS:,} characters together, found {characters:,}"
            )
        return self

    @model_validator(mode="after")
    def _ids_are_different(self) -> Self:
        ids = [one.id or str(place) for place, one in enumerate(self.contexts, 1)]
        twice = next((id_ for id_ in ids if ids.count(id_) > 1), None)
        if twice is not None:
            raise ValueError(f"expected an id of its own for each context, found {twice[:80]!r} more than once")
        return self


class RerouteRequest(Thresholds):
    """A recorded run under another policy or other thresholds; left out, those that it was made with.

    A preset is one of the policy's file.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "0123456789ab", "upper": 0.9}]}, extra="forbid")

    id: RunId | None = None
    record: dict[str, Any] | None = Field(
        None, description="A record as /query and /route give it, or as the application exports it."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.id is None) == (self.record is None):
            raise ValueError("expected either id or record")
        return self


# --- what is given ----------------------------------------------------------------------------------------------------


class Correction(ResponseBody):
    kind: CorrectionKind
    reason: Text
    chunk: Text | None = None
    """The chunk that it concerns; null: all of them."""
    query: Text = ""
    """What is searched or refined with, where that is known."""


class Decision(ResponseBody):
    action: Action | None
    """null: plain RAG, which judges nothing."""
    label: Text
    """The policy's own name of the action."""
    score: float | None
    """The overall score that was compared with the thresholds; of two signals the best answering score."""
    topical: float | None
    """Of two signals the best topical score, which was compared with the lower threshold."""
    reason: Text
    """In numbers."""
    rule: Text | None
    """The rule that decided without grading, if one did."""
    corrections: list[Correction]
    """What the policy wants done now, in order."""


class Flip(ResponseBody):
    threshold: Literal["lower", "upper"]
    relation: Literal["<", "≤", "≥", ">"]
    at: float
    distance: float
    to: Action
    """The action once `threshold` `relation` `at`."""


class Chunk(ResponseBody):
    number: int
    """By which answer and sources cite it."""
    id: Text
    source: Text
    origin: Origin
    url: Text | None
    page: int | None
    score: float | None
    """0 to 1; null: not graded, and `cause` says why."""
    parts: dict[Text, float]
    """Part scores, such as answering and topical."""
    reason: Text
    cause: Text
    action: Action | None
    """The action that this chunk's own score stands for; null where the policy compares no single chunk."""
    kept: bool
    """Whether it, or sentences of it, belong to the evidence; of /route: whether the policy does not discard it."""


class Policy(ResponseBody):
    name: Text
    lower: float
    upper: float
    cutoff: float
    evaluator: Text
    """Who graded."""


class Decided(ResponseBody):
    """A decision and what it rests on."""

    id: Text
    """Of the run."""
    decision: Decision
    chunks: list[Chunk]
    flips: list[Flip]
    """Single thresholds that would change the action, nearest first."""
    policy: Policy


class RouteResponse(Decided):
    seconds: float
    kept: bool
    """Whether it is in the history, under `id`."""
    record: dict[str, Any] | None = None


class Excerpt(ResponseBody):
    """Evidence that the answer may cite as [number], that of its chunk."""

    number: int
    chunk: Text
    text: Text
    source: Text
    origin: Origin
    url: Text | None
    page: int | None


class Metadata(BaseModel):
    """The run in short, in the words of the published description of this endpoint."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True)

    crag_decision: Text
    """The policy's name of the action, in capitals, such as CORRECT or RELEVANT; NOT_GRADED for plain RAG."""
    crag_score: float | None
    crag_correction_strategy: Text
    """query_expansion, re_retrieval, refinement, web_search, joined by +, or none."""
    crag_web_search_used: bool
    original_count: int
    final_count: int
    tokens_used: int
    retrieval_time_ms: float
    cache_hit: bool
    model_calls: int


class Evidenced(Decided):
    """A decision, the evidence that it leaves, and how the answer is headed."""

    sources: list[Excerpt]
    ending: AnswerEnding
    """As the page heads the answer. Only Answered and From the web have evidence behind them."""
    doubtful: bool


class QueryResponse(Evidenced):
    query: Text
    """The question that was retrieved for: in a conversation the one that stands alone."""
    asked: Text
    """The question as it came."""
    asks_back: Text
    """What is asked in place of an answer, since the question cannot be understood; empty: nothing."""
    answer: Text
    """Empty where there is none; `message` says why. One that is `doubtful` is no answer but the nearest sentences."""
    state: AnswerState | None
    message: Text
    """Why there is no answer, or no whole one: of one that is "cut", where; `resume` asks for the rest."""
    metadata: Metadata
    kept: bool
    """Whether the run is in the history, under `id`."""
    record: dict[str, Any] | None = None


class RerouteResponse(Evidenced):
    missing: list[Text]
    """What this policy would need that the run never did."""
    answer: Text | None
    """The recorded answer if it was written from exactly this evidence, or quotations of it; null: generate it."""


class Part(ResponseBody):
    works: bool
    needed: bool
    """Without it no question can be answered."""
    problem: Text
    """Told only to who has the token."""


Status = Literal["ok", "degraded", "starting", "failing"]


class HealthResponse(ResponseBody):
    status: Status
    """degraded: questions are answered, but a part that is not needed for that fails."""
    version: Text
    parts: dict[str, Part]
    runs_under_way: int
    runs_waiting: int


class ErrorResponse(ResponseBody):
    error: Text
    """What was expected, and what was found."""
    hint: Text
    """What to do."""
    kind: Text
    """The type of the error."""
    id: Text | None = None
    """The run that broke off and is kept: `resume` carries it on."""
    ending: Ending | None = None
