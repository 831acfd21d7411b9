"""Several providers in order, with a bounded memory of what they replied."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel, Clock, WebReply, WebSearcher
from crag_core.base.types.web import WebAttempt, WebOutcome


class SearchChain:
    """Asks in the given order until one finds something. `attempts` of the reply holds all that were asked, in order.

    When none did, one that found nothing decides over those that failed, and the message is what all of them said.
    At most `size` replies are kept for `seconds`, failures are not. Safe to share between sessions.
    """

    def __init__(
        self,
        searchers: Sequence[WebSearcher],
        identity: str = "",
        size: int = 256,
        seconds: float = 3600.0,
        clock: Clock = time.monotonic,
    ) -> None:
        """`identity` differs wherever other results are to be expected."""
        self.identity = identity
        self.last: WebReply | None = None
        """The newest reply in any session, for a health display."""
        self._searchers, self._size, self._seconds, self._clock = tuple(searchers), size, seconds, clock
        self._kept: dict[tuple[str, int], tuple[float, WebReply]] = {}
        self._lock = Lock()

    @property
    def name(self) -> str:
        return ", then ".join(searcher.name for searcher in self._searchers)

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        key = (" ".join(query.split()).casefold(), limit)
        with self._lock:
            kept_at, kept = self._kept.get(key, (0.0, None))
        if kept is not None and self._clock() - kept_at < self._seconds:
            return replace(kept, from_cache=True)
        now = self._clock()
        self.last = reply = self._ask(query, limit, cancel)
        with self._lock:
            self._kept.pop(key, None)
            if _is_worth_keeping(reply):
                self._kept[key] = (now, reply)
            if len(self._kept) > self._size:
                del self._kept[next(iter(self._kept))]  # the oldest
        return reply

    def _ask(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        replies: list[WebReply] = []
        for searcher in self._searchers:
            if cancel.is_set():
                raise Stopped()
            replies.append(searcher.search(query, limit, cancel))
            if replies[-1].outcome is WebOutcome.USED:
                return replace(replies[-1], attempts=_attempts(replies))
        text = " ".join(reply.message or f"{reply.provider}: {reply.outcome}." for reply in replies)
        # The last that found nothing, else the last: a web without results is a fact, an outage is none.
        found_nothing = (reply for reply in reversed(replies) if reply.outcome is WebOutcome.EMPTY)
        return replace(next(found_nothing, replies[-1]), message=text, attempts=_attempts(replies))


def _attempts(replies: list[WebReply]) -> tuple[WebAttempt, ...]:
    return tuple(WebAttempt(reply.provider, reply.outcome, reply.message) for reply in replies)


def _is_worth_keeping(reply: WebReply) -> bool:
    """Results always; "nothing found" only from all that were asked, for one that failed may know more in a minute."""
    if reply.outcome is WebOutcome.EMPTY:
        return all(attempt.outcome is WebOutcome.EMPTY for attempt in reply.attempts)
    return reply.outcome is WebOutcome.USED
