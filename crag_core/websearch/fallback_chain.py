"""Several providers in order: the next is asked when one fails or finds nothing; every attempt is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel, WebReply, WebSearcher
from crag_core.base.types import WebAttempt, WebOutcome


class SearchChain:
    """Asks in the given order until one finds something. `attempts` of the reply holds all that were asked, in order.

    When none did, one that found nothing decides over those that failed, and the message is what all of them said.
    """

    def __init__(self, searchers: Sequence[WebSearcher]) -> None:
        if not searchers:
            raise ValueError("expected at least one search provider, found none")
        self._searchers = tuple(searchers)

    @property
    def name(self) -> str:
        return ", then ".join(searcher.name for searcher in self._searchers)

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        replies: list[WebReply] = []
        for searcher in self._searchers:
            if cancel.is_set():
                raise Stopped("Stopped by you.")
            replies.append(searcher.search(query, limit, cancel))
            if replies[-1].outcome is WebOutcome.USED:
                return replace(replies[-1], attempts=_attempts(replies))
        text = " ".join(_describe(reply) for reply in replies)
        return replace(_deciding(replies), message=text, attempts=_attempts(replies))


def _deciding(replies: list[WebReply]) -> WebReply:
    """The last that found nothing, else the last: a web without results is a fact, an outage is none."""
    return next((reply for reply in reversed(replies) if reply.outcome is WebOutcome.EMPTY), replies[-1])


def _attempts(replies: list[WebReply]) -> tuple[WebAttempt, ...]:
    """One for each reply; a reply that has attempts of its own, such as a chain's, brings those."""
    return tuple(
        attempt
        for reply in replies
        for attempt in reply.attempts or (WebAttempt(reply.provider, reply.outcome, reply.message),)
    )


def _describe(reply: WebReply) -> str:
    return reply.message or f"{reply.provider}: {reply.outcome}."
