"""The address of a search server, and one JSON request to it: bounds on time and size, no redirects, cancellation."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crag_core.base.concurrency.cancellation import wait_for
from crag_core.base.errors import BadRecord, Stopped
from crag_core.base.network.addresses import check_url, is_server, without_login
from crag_core.base.protocols import Cancel
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.results import on_one_line, well_formed

if TYPE_CHECKING:
    import httpx


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


@dataclass(frozen=True)
class Call:
    """What is asked: a GET with `params`, or a POST of `body` as JSON.

    `key` is sent as a bearer token and struck out of whatever comes back; `login` is a name and a password.
    """

    url: str
    params: Mapping[str, str | int] | None = None
    body: Mapping[str, Any] | None = None
    login: tuple[str, str] | None = field(default=None, repr=False)
    key: str = field(default="", repr=False)

    def cleaned(self, value: Any) -> Any:
        """A JSON value whose texts are well formed and do not hold the key, which servers repeat in what they say."""
        if isinstance(value, str):
            text = well_formed(value)
            return text.replace(self.key, "[key]") if self.key else text
        if isinstance(value, list):
            return [self.cleaned(item) for item in value]
        if isinstance(value, dict):
            return {name: self.cleaned(item) for name, item in value.items()}
        return value

    def shortened(self, text: object) -> str:
        """A foreign text for a message: without the key, on one line, at most 160 characters."""
        return on_one_line(self.cleaned(str(text)))  # cleaned first: a cut could leave a piece of the key


@dataclass(frozen=True)
class Answer:
    """An HTTP status and the JSON that came with it; `data` is None when the body was no JSON."""

    status: int
    data: Any

    @property
    def said(self) -> str:
        """What an error says of itself, wherever the server puts it; "" where it says nothing."""
        data = self.data
        while not isinstance(data, str):
            if isinstance(data, list) and data:
                data = data[0]
            elif isinstance(data, dict):
                data = next((data[key] for key in ("detail", "error", "message", "msg") if key in data), "")
            else:
                return ""
        return on_one_line(data)

    @property
    def describe(self) -> str:
        """The status, and what was said with it."""
        return f"HTTP {self.status}: {self.said}" if self.said else f"HTTP {self.status}"


class NoAnswer(Exception):
    """A call brought no results; `why` goes on where the provider's name begins a sentence."""

    def __init__(self, outcome: WebOutcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why


def find_results(
    call: Call, seconds: float, cancel: Cancel, refusal: Callable[[Answer], NoAnswer], no_json: str
) -> list[Any]:
    """The list `results` that a search server answers with, within `seconds`; raises `Stopped` once `cancel` is set.

    Raises `NoAnswer`: what `refusal` makes of an error status, or with `no_json` for anything else.
    """
    if cancel.is_set():
        raise Stopped("Stopped by you.")
    status, body = wait_for(_ask(call, seconds), cancel)
    try:
        data = call.cleaned(json.loads(body))
    except (ValueError, RecursionError):
        data = None
    if status >= 400:
        raise refusal(Answer(status, data))
    if not isinstance(data, dict) or not isinstance(results := data.get("results"), list):
        raise NoAnswer(WebOutcome.FAILED, f"answered with something that is {no_json}")
    return results


async def _ask(call: Call, seconds: float) -> tuple[int, bytes]:
    import httpx

    from crag_core.base.network.http_guard import NotAsked

    headers = {"Authorization": f"Bearer {call.key}"} if call.key else {}
    method = "GET" if call.body is None else "POST"
    try:
        async with asyncio.timeout(seconds), _client(call, seconds) as client:
            # A login goes in its own argument: in the address, the client would write it into its log.
            response = await client.request(
                method, call.url, params=call.params, json=call.body, headers=headers, auth=call.login
            )
            return response.status_code, response.content
    except NotAsked as error:
        raise NoAnswer(WebOutcome.FAILED, str(error)) from None
    except (TimeoutError, httpx.TimeoutException):
        raise NoAnswer(WebOutcome.TIMED_OUT, f"did not answer within {seconds:g} s") from None
    except httpx.ConnectError as error:
        place = call.url.partition("://")[2].partition("/")[0]
        why = f"could not be reached at {place} ({call.shortened(error)}); check the address and the connection"
        raise NoAnswer(WebOutcome.FAILED, why) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NoAnswer(WebOutcome.FAILED, f"could not be asked ({call.shortened(error)})") from None


def _client(call: Call, seconds: float) -> httpx.AsyncClient:
    import httpx

    from crag_core.base.network.http_guard import hooks

    try:
        return httpx.AsyncClient(headers=_HEADERS, timeout=None, **hooks(LARGEST_REPLY, seconds))
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        why = f"could not be asked: the proxy set in the environment cannot be used ({call.shortened(error)})"
        raise NoAnswer(WebOutcome.FAILED, why) from None
