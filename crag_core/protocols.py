"""What the pipeline needs from the outside world. Each protocol is one method wide, or close to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from crag_core.types import EvaluatorCard, Grade, Passage, Usage, WebOutcome

Messages = Sequence[tuple[str, str]]
"""A chat as (role, text) pairs; roles are system, user and assistant."""

Cancel = Event
"""Set from another thread to stop; whoever waits for the outside looks at it and raises `Stopped`."""


@dataclass(frozen=True)
class Reply:
    """What a language model said, as it came."""

    text: str
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Found:
    """What a retriever found: passages in rank order, and their mean pairwise cosine when vectors are there."""

    passages: tuple[Passage, ...]
    agreement: float | None = None


@dataclass(frozen=True)
class WebReply:
    """What one provider answered: an outcome, its results as passages in the provider's order, a message for people."""

    outcome: WebOutcome
    provider: str
    passages: tuple[Passage, ...] = ()
    message: str = ""
    from_cache: bool = False


class Retriever(Protocol):
    def retrieve(self, question: str, limit: int) -> Found:
        """At most `limit` passages, best first; raises `StoreUnavailable` or `EmbeddingUnavailable`."""
        ...


class Evaluator(Protocol):
    @property
    def card(self) -> EvaluatorCard: ...

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        """One grade a passage, in the passages' order; what cannot be graded comes back with score None and a cause."""
        ...


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
        ...

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: dict[str, Any] | None = None
    ) -> list[Reply | Exception]:
        """Several replies at once under the model's own cap; a chat that failed holds its error in place of a reply."""
        ...

    def stream(self, messages: Messages, cancel: Cancel) -> Iterator[str | Usage]:
        """Pieces of text as they come, the usage last; closing the iterator closes the connection."""
        ...


class WebSearcher(Protocol):
    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        """Never raises for a fault of the provider: the outcome says what happened."""
        ...


Clock = Callable[[], float]
"""Seconds from an arbitrary start, never going back."""
