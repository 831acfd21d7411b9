"""DuckDuckGo through `ddgs`: no key, one request a search, every outcome told apart."""

from __future__ import annotations

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from typing import Any
from urllib.parse import urlsplit

from crag_core.errors import Stopped
from crag_core.protocols import Cancel, WebReply
from crag_core.types import Origin, Passage, WebOutcome

NAME = "DuckDuckGo"
_GLANCE = 0.05  # seconds between two looks at the cancel flag
_TOO_MANY = (202, 403, 418, 429)  # how DuckDuckGo says "slow down"


class DuckDuckGo:
    """`timeout` in seconds for one request; after a rate limit it waits `pauses` (seconds) in turn and asks again."""

    def __init__(self, timeout: float = 8.0, pauses: tuple[float, ...] = (1.0, 3.0)) -> None:
        self._timeout = timeout
        self._pauses = pauses
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="web-search")

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

        for pause in (*self._pauses, None):
            try:
                # A request of ddgs cannot be interrupted: who stops is let go, its thread ends by the time-out.
                results = _wait(self._threads.submit(_ask, query, self._timeout), cancel)
                break
            except RatelimitException:
                if pause is None:
                    return _failed(WebOutcome.RATE_LIMITED, "is limiting the rate of requests; try again in a minute")
                if cancel.wait(pause):
                    raise Stopped("Stopped by you.") from None
            except TimeoutException:
                return _failed(WebOutcome.TIMED_OUT, f"did not answer within {self._timeout:g} s")
            except DDGSException as error:
                return _failed(WebOutcome.FAILED, f"could not be asked ({str(error)[:120]})")
        passages = _passages(results)[:limit]
        if not passages:
            return _failed(WebOutcome.EMPTY, f"found nothing for “{query}”")
        return WebReply(WebOutcome.USED, NAME, passages)


def _ask(query: str, timeout: float) -> list[Any]:
    """The results of one request in DuckDuckGo's own order.

    The engine is used directly: `DDGS.text` reorders results and reports a rate limit as "No results found".
    """
    from ddgs.engines.duckduckgo import Duckduckgo
    from ddgs.exceptions import DDGSException, RatelimitException
    from lxml.etree import LxmlError

    class Honest(Duckduckgo):
        def request(self, *args: Any, **kwargs: Any) -> str:
            response = self.http_client.request(*args, **kwargs)
            status = response.status_code
            if status != 200:
                raise (RatelimitException if status in _TOO_MANY else DDGSException)(f"HTTP {status}")
            return str(response.text)

    try:
        return Honest(timeout=timeout).search(query) or []  # type: ignore[arg-type]  # a float will do
    except (LxmlError, ValueError) as error:
        raise DDGSException(f"its page could not be read: {error}") from error


def _wait(future: Future[list[Any]], cancel: Cancel) -> list[Any]:
    while True:
        try:
            return future.result(timeout=_GLANCE)
        except StillRunning:
            if cancel.is_set():
                raise Stopped("Stopped by you.") from None


def _passages(results: list[Any]) -> tuple[Passage, ...]:
    """The results that lead to the web, each address once."""
    kept: dict[str, Passage] = {}
    for result in results:
        if _is_web_address(result.href):
            kept.setdefault(result.href, _passage(result))
    return tuple(kept.values())


def _passage(result: Any) -> Passage:
    digest = hashlib.sha256(result.href.encode("utf-8", "replace")).hexdigest()[:12]
    return Passage(
        id=f"web-{digest}",
        text=result.body.strip() or result.title.strip(),
        source=result.title.strip() or urlsplit(result.href).netloc,
        origin=Origin.WEB,
        document_id=f"web-{digest}",
        url=result.href,
        found_by=("web",),
    )


def _is_web_address(address: str) -> bool:
    """Whether a link may be shown as one: http or https with a host, never javascript: or data:."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _failed(outcome: WebOutcome, why: str) -> WebReply:
    return WebReply(outcome, NAME, message=f"{NAME} {why}.")
