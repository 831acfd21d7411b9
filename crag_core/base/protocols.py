"""Protocols of the parts that the pipeline is given: retriever, evaluator, language model, web search and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import Engine, Passage
from crag_core.base.types.steps import Usage
from crag_core.base.types.web import WebAttempt, WebOutcome

Messages = Sequence[tuple[str, str]]  # A chat as (role, text) pairs; roles are system, user and assistant
Cancel = Event  # set from another thread to stop; whoever waits for the outside looks at it and raises `Stopped`


@dataclass(frozen=True)
class Reply:
    """What a language model said, as it came.

    `top_logprobs`: the tokens that might have stood first, with their natural log probabilities; () if not asked for.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    top_logprobs: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class RetrievalResult:
    """What a retriever found: passages in rank order, and their mean pairwise cosine when vectors are there.

    `by`: what was searched with, where that was not the question.
    """

    passages: tuple[Passage, ...]
    agreement: float | None = None
    by: str = ""


@dataclass(frozen=True)
class WebReply:
    """What one provider answered: an outcome, its results as passages in the provider's order, a message for people.

    `is_offline`: the addresses of its results lead nowhere on the network.
    """

    outcome: WebOutcome
    provider: str
    passages: tuple[Passage, ...] = ()
    message: str = ""
    from_cache: bool = False
    attempts: tuple[WebAttempt, ...] = ()
    is_offline: bool = False


@dataclass(frozen=True)
class PageText:
    """A web page in chunks (text, section) of `characters` in all, or `why` it was not read."""

    chunks: tuple[tuple[str, str], ...] = ()
    why: str = ""
    seconds: float = 0.0
    characters: int = 0


@dataclass(frozen=True)
class Piece:
    """A sentence of the evidence; `id` is its strip's, or its passage's where no strip of it was recorded.

    `excerpt` is the number that it is cited by.
    """

    id: str
    text: str
    excerpt: int


@dataclass(frozen=True)
class Backing:
    """What stands behind a sentence of an answer; `score` in 0..1, None when that could not be measured.

    `pieces` are ids, best first; `usage` is what it cost to find out.
    """

    score: float | None
    pieces: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Retriever(Protocol):
    def retrieve(self, question: str, limit: int, engine: Engine = Engine.HYBRID) -> RetrievalResult:
        """At most `limit` passages, best first; raises `StoreUnavailable` or `EmbeddingUnavailable`."""

    def hiding(self, text: str) -> Retriever:
        """The same for a search in which passages that hold `text` count as not indexed; "": all are."""

    def read_files(self, document_ids: Sequence[str]) -> tuple[Passage, ...]:
        """Each document whole, as one passage found by "read_file"; raises `DocumentMissing` or `StoreUnavailable`."""


class Evaluator(Protocol):
    @property
    def card(self) -> EvaluatorCard: ...

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        """One grade a passage, in the passages' order; what cannot be graded comes back with score None and a cause."""


class StripEvaluator(Evaluator, Protocol):
    def score(
        self, question: str, chunks: Sequence[tuple[Passage, Sequence[Strip]]], cancel: Cancel
    ) -> tuple[tuple[Strip, ...], str]:
        """The strips of all chunks in order, scored in the light of their chunk, and why some are not; "": all are."""


class Embedder(Protocol):
    @property
    def name(self) -> str: ...
    def embed_question(self, text: str) -> Sequence[float]: ...
    def embed_texts(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


class LanguageModel(Protocol):
    @property
    def name(self) -> str: ...

    def complete(self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None) -> Reply:
        """The whole reply; raises `ModelUnavailable`, `ModelMissing` or `Stopped`."""

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: dict[str, Any] | None = None
    ) -> list[Reply | Exception]:
        """Several replies at once under the model's own cap; a chat that failed holds its error in place of a reply."""

    def first_tokens(self, chats: Sequence[Messages], cancel: Cancel) -> list[Reply | Exception]:
        """The first token of each reply and the tokens that might have stood there, as `complete_all`.

        Raises `NoLogProbabilities`, after one call, where the server tells none.
        """

    def stream(self, messages: Messages, cancel: Cancel) -> Iterator[str | Usage]:
        """Pieces of text as they come, the usage last; closing the iterator closes the connection."""


class WebSearcher(Protocol):
    @property
    def name(self) -> str:
        """Who is asked, in the words of the user: "DuckDuckGo", or "SearXNG, then DuckDuckGo"."""

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        """Never raises for a fault of the provider: the outcome says what happened."""


class PageReader(Protocol):
    def read(self, urls: Sequence[str], cancel: Cancel) -> tuple[PageText, ...]:
        """In the order of the addresses. Never raises for a fault of a page: `why` says what happened."""


class SupportMeter(Protocol):
    def measure(
        self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel, question: str = ""
    ) -> tuple[Backing, ...]:
        """What of the evidence stands behind each sentence of an answer to `question`; raises a `CragError`."""


class GradeCache(Protocol):
    """Grades by key; neither method raises: a cache that is away only costs the work again."""

    def get_many(self, keys: Sequence[str]) -> dict[str, Grade]: ...
    def put_many(self, grades: dict[str, Grade]) -> None: ...


Clock = Callable[[], float]  # seconds from an arbitrary start, never going back
