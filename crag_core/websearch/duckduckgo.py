"""DuckDuckGo through `ddgs`: no key."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, Self

from crag_core.base.concurrency.cancellation import wait_for
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.results import SLOW_DOWN, Hit, failed, reply_of

_TOO_MANY = (202, 403, 418, 429)  # how DuckDuckGo says "slow down"
LARGEST_PAGE = 2_000_000  # bytes, unpacked; a page of results has some ten thousand


class DuckDuckGo:
    """`timeout` in seconds for one request."""

    name = "DuckDuckGo"
    needs = ""

    def __init__(self, timeout: float = 8.0) -> None:
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="web-search")

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Self:
        return cls(settings["CRAG_WEB_TIMEOUT"])

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

        try:
            # A request of ddgs cannot be interrupted: who stops is let go, its thread ends by the time-out.
            results = wait_for(self._threads.submit(_ask, query, self._timeout), cancel)
        except RatelimitException:
            return failed(self.name, WebOutcome.RATE_LIMITED, SLOW_DOWN)
        except TimeoutException:
            return failed(self.name, WebOutcome.TIMED_OUT, f"did not answer within {self._timeout:g} s")
        except DDGSException as error:
            return failed(self.name, WebOutcome.FAILED, f"could not be asked ({str(error)[:120]})")
        hits = (Hit(result.href, result.title, result.body) for result in results)
        return reply_of(self.name, query, hits, limit)


def _ask(query: str, timeout: float) -> list[Any]:
    """The results of one request in DuckDuckGo's own order.

    The engine is used directly: `DDGS.text` reorders results and reports a rate limit as "No results found". So is its
    client, which would follow redirects to any address and read a page without end.
    """
    import primp
    from ddgs.engines.duckduckgo import Duckduckgo
    from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException
    from lxml.etree import LxmlError

    class Honest(Duckduckgo):
        def request(self, *args: Any, **kwargs: Any) -> str:
            try:
                options = {**kwargs, "follow_redirects": False, "stream": True}
                with closing(self.http_client.client.request(*args, **options)) as response:
                    return self._read(response)
            except primp.TimeoutError as error:
                raise TimeoutException(error) from error
            except primp.PrimpError as error:
                raise DDGSException(f"{type(error).__name__}: {error}") from error

        def _read(self, response: Any) -> str:
            status = response.status_code
            if status != 200:
                raise (RatelimitException if status in _TOO_MANY else DDGSException)(f"HTTP {status}")
            page = bytearray()
            for piece in response.iter_bytes():
                page += piece
                if len(page) > LARGEST_PAGE:
                    raise DDGSException(f"its page has more than {LARGEST_PAGE // 1_000_000} MB, and is not read")
            return page.decode("utf-8", "replace")

    try:
        return Honest(timeout=timeout).search(query) or []  # type: ignore[arg-type]  # a float will do
    except (LxmlError, ValueError) as error:
        raise DDGSException(f"its page could not be read: {error}") from error
