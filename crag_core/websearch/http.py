"""The address of a search server, and one JSON request to it: bounds on time and size, no redirects, cancellation."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crag_core.base.concurrency.cancellation import wait_for
from crag_core.base.errors import BadRecord, Stopped
from crag_core.base.network.addresses import check_url, is_server, without_login
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.results import failed, on_one_line, read_hits, reply_of, well_formed

_NOT_IN_AN_ADDRESS = re.compile(r"[\s\x00-\x1f\x7f?#]")


def read_address(provider: str, text: str) -> tuple[str, tuple[str, str] | None]:
    """(the address without a trailing slash and a login, name and password if there are any).

    Raises `BadRecord` for anything but http:// or https:// with a host, a port and a path as they please.
    """
    if not is_server(text) or _NOT_IN_AN_ADDRESS.search(text):
        shown = text.rpartition("@")[2]  # what stands before it may be a password
        raise BadRecord(
            f"{provider}: expected an address such as http://localhost:8080, found {shown[:80]!r}.",
            hint="It needs http:// or https:// and a host, and may have a port and a path, but no “?” or “#”.",
        )
    check_url(provider, text)
    scheme, _, rest = text.partition(":")
    url, login = without_login(f"{scheme.lower()}:{rest}")
    return url.rstrip("/"), login


LARGEST_REPLY = 2_000_000  # bytes
_HEADERS = {"Accept": "application/json, */*;q=0.5", "User-Agent": "CRAG-Explorer"}
TOLD = "{told}"
"""Stands in the words of a refusal for its status, and what the server said with it."""


@dataclass(frozen=True)
class JsonSearch:
    """A search server that answers with a JSON object in which stands a list of `results`.

    `seconds` are for a search. `refusals`: what an error status means, `no_json`: what an answer of another kind is;
    both go on where the provider's name begins a sentence. `key` is a bearer token, struck out of whatever comes back.
    """

    name: str
    seconds: float
    refusals: Mapping[int, tuple[WebOutcome, str]]
    no_json: str
    key: str = field(default="", repr=False)

    def search(self, query: str, limit: int, cancel: Cancel, method: str, url: str, **sent: Any) -> WebReply:
        """`sent` are arguments of an `httpx` request; raises `Stopped` once `cancel` is set.

        A login goes in `auth`: in the address, the client would write it into its log.
        """
        if cancel.is_set():
            raise Stopped()
        found = wait_for(self._ask(method, url, sent), cancel)
        if isinstance(found, WebReply):
            return found
        return reply_of(self.name, query, read_hits(found), limit)

    async def _ask(self, method: str, url: str, sent: dict[str, Any]) -> list[Any] | WebReply:
        """The results, or why there are none."""
        import httpx

        from crag_core.base.network.http_guard import NotAsked, hooks

        headers = _HEADERS | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        try:
            client = httpx.AsyncClient(headers=headers, timeout=None, **hooks(LARGEST_REPLY, self.seconds))
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            why = f"could not be asked: the proxy set in the environment cannot be used ({self._short(error)})"
            return failed(self.name, WebOutcome.FAILED, why)
        try:
            async with asyncio.timeout(self.seconds), client:
                response = await client.request(method, url, **sent)
        except (TimeoutError, httpx.TimeoutException):
            return failed(self.name, WebOutcome.TIMED_OUT, f"did not answer within {self.seconds:g} s")
        except NotAsked as error:
            return failed(self.name, WebOutcome.FAILED, str(error))
        except httpx.ConnectError as error:
            place = url.partition("://")[2].partition("/")[0]
            why = f"could not be reached at {place} ({self._short(error)}); check the address and the connection"
            return failed(self.name, WebOutcome.FAILED, why)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return failed(self.name, WebOutcome.FAILED, f"could not be asked ({self._short(error)})")
        return self._results(response.status_code, response.content)

    def _results(self, status: int, body: bytes) -> list[Any] | WebReply:
        try:
            data = json.loads(self._clean(json.dumps(json.loads(body), ensure_ascii=False)))
        except (ValueError, RecursionError):
            data = None
        if status >= 400:
            outcome, why = self.refusals.get(status, (WebOutcome.FAILED, f"could not be asked ({TOLD})"))
            told = f"HTTP {status}: {said}" if (said := _said(data)) else f"HTTP {status}"
            return failed(self.name, outcome, why.replace(TOLD, told))
        if not isinstance(data, dict) or not isinstance(results := data.get("results"), list):
            return failed(self.name, WebOutcome.FAILED, f"answered with something that is {self.no_json}")
        return results

    def _clean(self, text: str) -> str:
        return well_formed(text).replace(self.key, "[key]") if self.key else well_formed(text)

    def _short(self, error: Exception) -> str:
        return on_one_line(self._clean(str(error)))  # cleaned first: a cut could leave a piece of the key


def _said(data: Any) -> str:
    """What an error says of itself, wherever the server puts it; "" where it says nothing."""
    while not isinstance(data, str):
        if isinstance(data, list) and data:
            data = data[0]
        elif isinstance(data, dict):
            data = next((data[key] for key in ("detail", "error", "message", "msg") if key in data), "")
        else:
            return ""
    return on_one_line(data)
