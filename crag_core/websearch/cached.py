"""A bounded cache of web searches, valid for an hour."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import replace
from threading import Lock

from crag_core.base.protocols import Cancel, Clock, WebReply, WebSearcher
from crag_core.base.types import WebOutcome


class CachedSearcher:
    """Keeps at most `size` answers for `seconds`; failures are not kept. Safe to share between sessions."""

    def __init__(
        self,
        searcher: WebSearcher,
        identity: str = "",
        size: int = 256,
        seconds: float = 3600.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self.identity = identity or searcher.name
        """Differs wherever other results are to be expected."""
        self._searcher = searcher
        self._size = size
        self._seconds = seconds
        self._clock = clock
        self._kept: OrderedDict[tuple[str, int], tuple[float, WebReply]] = OrderedDict()
        self._lock = Lock()
        self.last: WebReply | None = None
        """The newest answer of any session, for a health display."""

    @property
    def name(self) -> str:
        return self._searcher.name

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        key = (" ".join(query.split()).casefold(), limit)
        now = self._clock()
        with self._lock:
            kept_at, reply = self._kept.get(key, (now - self._seconds, None))
            if reply is not None and now - kept_at < self._seconds:
                self._kept.move_to_end(key)
                return replace(reply, from_cache=True)
        self.last = reply = self._searcher.search(query, limit, cancel)
        if _is_worth_keeping(reply):
            with self._lock:
                self._kept[key] = (now, reply)
                self._kept.move_to_end(key)
                while len(self._kept) > self._size:
                    self._kept.popitem(last=False)
        return reply


def _is_worth_keeping(reply: WebReply) -> bool:
    """Results always; "nothing found" only from all that were asked, for one that failed may know more in a minute."""
    if reply.outcome is WebOutcome.EMPTY:
        return all(attempt.outcome is WebOutcome.EMPTY for attempt in reply.attempts)
    return reply.outcome is WebOutcome.USED
