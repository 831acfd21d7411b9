"""One JSON request with bounds on time and size, no redirects, and cancellation."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from crag_core.base.concurrency.event_loop import wait_for
from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.types import WebOutcome
from crag_core.websearch.calls import Answer, Call, Deadline, NoAnswer
from crag_core.websearch.results import is_web_address

if TYPE_CHECKING:
    import httpx

LARGEST_REPLY = 2_000_000  # bytes
_HEADERS = {"Accept": "application/json, */*;q=0.5", "User-Agent": "CRAG-Explorer"}


def fetch(call: Call, deadline: Deadline, cancel: Cancel) -> Answer:
    """Ask and read the answer, whatever its status; raises `NoAnswer`, or `Stopped` once `cancel` is set."""
    if cancel.is_set():
        raise Stopped("Stopped by you.")
    status, body = wait_for(_ask(call, deadline), cancel)
    try:
        return Answer(status, call.cleaned(json.loads(body)))
    except (ValueError, RecursionError):
        return Answer(status, None)


async def _ask(call: Call, deadline: Deadline) -> tuple[int, bytes]:
    import httpx

    from crag_core.base.network.http_guard import NotAsked

    headers = {"Authorization": f"Bearer {call.key}"} if call.key else {}
    method = "GET" if call.body is None else "POST"
    try:
        async with asyncio.timeout(deadline.left), _client(call, deadline.seconds) as client:
            # A login goes in its own argument: in the address, the client would write it into its log.
            response = await client.request(
                method, call.url, params=call.params, json=call.body, headers=headers, auth=call.login
            )
            return response.status_code, response.content
    except NotAsked as error:
        raise NoAnswer(WebOutcome.FAILED, str(error)) from None
    except (TimeoutError, httpx.TimeoutException):
        raise NoAnswer(WebOutcome.TIMED_OUT, f"did not answer within {deadline.seconds:g} s") from None
    except httpx.ConnectError as error:
        place = call.url.partition("://")[2].partition("/")[0]
        why = f"could not be reached at {place} ({call.shortened(error)}); check the address and the connection"
        raise NoAnswer(WebOutcome.FAILED, why) from None
    except httpx.HTTPError as error:
        raise NoAnswer(WebOutcome.FAILED, f"could not be asked ({call.shortened(error)})") from None


def _client(call: Call, seconds: float) -> httpx.AsyncClient:
    import httpx

    from crag_core.base.network.http_guard import async_hooks

    async def refuse_redirect(response: httpx.Response) -> None:
        # Here and not later: the client reads the target even if it does not follow, and fails at odd ones.
        if response.has_redirect_location:
            raise NoAnswer(WebOutcome.FAILED, _redirected(call, response.headers["location"]))

    bounds: dict[str, Any] = async_hooks(LARGEST_REPLY, seconds)
    bounds["event_hooks"]["response"].insert(0, refuse_redirect)
    try:
        return httpx.AsyncClient(headers=_HEADERS, timeout=None, **bounds)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        why = f"could not be asked: the proxy set in the environment cannot be used ({call.shortened(error)})"
        raise NoAnswer(WebOutcome.FAILED, why) from None


def _redirected(call: Call, location: str) -> str:
    try:
        target = call.shortened(urljoin(call.url, location))
    except ValueError:
        target = ""
    shown = target if is_web_address(target) else "no web address"
    return f"sends requests on to {shown}, which is not followed; if it has moved there, set that as its address"
