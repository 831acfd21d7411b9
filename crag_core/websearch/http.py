"""One JSON request with bounds on time and size, no redirects, and cancellation.

A synchronous read cannot be interrupted from another thread and has no time limit for the whole; an awaited one has
both. So requests run on one event loop in a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from crag_core.base.concurrency.cancellation import wait_for
from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.types import WebOutcome
from crag_core.websearch.calls import Answer, Call, Deadline, NoAnswer
from crag_core.websearch.results import is_web_address

if TYPE_CHECKING:
    import httpx

LARGEST_REPLY = 2_000_000  # bytes, unpacked
_HEADERS = {"Accept": "application/json, */*;q=0.5", "Accept-Encoding": "gzip", "User-Agent": "CRAG-Explorer"}


def fetch(call: Call, deadline: Deadline, cancel: Cancel) -> Answer:
    """Ask and read the answer, whatever its status; raises `NoAnswer`, or `Stopped` once `cancel` is set."""
    if cancel.is_set():
        raise Stopped("Stopped by you.")
    status, body = wait_for(asyncio.run_coroutine_threadsafe(_ask(call, deadline), _loop()), cancel)
    try:
        return Answer(status, call.cleaned(json.loads(body)))
    except (ValueError, RecursionError):
        return Answer(status, None)


async def _ask(call: Call, deadline: Deadline) -> tuple[int, bytes]:
    import httpx

    try:
        async with (
            asyncio.timeout(deadline.left),
            _client(call) as client,
            client.stream(**_request(call)) as response,
        ):
            return response.status_code, await _body(response)
    except (TimeoutError, httpx.TimeoutException):
        raise NoAnswer(WebOutcome.TIMED_OUT, f"did not answer within {deadline.seconds:g} s") from None
    except httpx.ConnectError as error:
        place = call.url.partition("://")[2].partition("/")[0]
        why = f"could not be reached at {place} ({call.shortened(error)}); check the address and the connection"
        raise NoAnswer(WebOutcome.FAILED, why) from None
    except httpx.HTTPError as error:
        raise NoAnswer(WebOutcome.FAILED, f"could not be asked ({call.shortened(error)})") from None


def _client(call: Call) -> httpx.AsyncClient:
    import httpx

    from crag_core.base.network.http_guard import check_peer, check_request

    async def refuse_redirect(response: httpx.Response) -> None:
        check_peer(response)
        # Here and not later: the client reads the target even if it does not follow, and fails at odd ones.
        if response.has_redirect_location:
            raise NoAnswer(WebOutcome.FAILED, _redirected(call, response.headers["location"]))

    hooks: dict[str, list[Any]] = {"request": [check_request], "response": [refuse_redirect]}
    try:
        return httpx.AsyncClient(headers=_HEADERS, timeout=None, verify=_certificates(), event_hooks=hooks)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        why = f"could not be asked: the proxy set in the environment cannot be used ({call.shortened(error)})"
        raise NoAnswer(WebOutcome.FAILED, why) from None


def _request(call: Call) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {call.key}"} if call.key else {}
    # A login goes in its own argument: in the address, the client would write it into its log.
    rest = {"params": call.params, "json": call.body, "headers": headers, "auth": call.login}
    return {"method": "GET" if call.body is None else "POST", "url": call.url, **rest}


async def _body(response: httpx.Response) -> bytes:
    """The body, unpacked here piece by piece: a client that unpacks by itself makes gigabytes of a small bomb."""
    coding = response.headers.get("content-encoding", "identity").lower()
    if coding not in ("gzip", "identity"):
        raise NoAnswer(WebOutcome.FAILED, "answered in a packing that it was not asked for")
    unpacker = zlib.decompressobj(wbits=31) if coding == "gzip" else None
    body = bytearray()
    async for piece in response.aiter_raw():
        try:
            body += unpacker.decompress(piece, LARGEST_REPLY + 1 - len(body)) if unpacker else piece
        except zlib.error:
            raise NoAnswer(WebOutcome.FAILED, "answered with something that cannot be unpacked") from None
        if len(body) > LARGEST_REPLY:
            raise NoAnswer(WebOutcome.FAILED, f"answered with more than {LARGEST_REPLY // 1_000_000} MB; none is used")
    return bytes(body)


def _redirected(call: Call, location: str) -> str:
    try:
        target = call.shortened(urljoin(call.url, location))
    except ValueError:
        target = ""
    shown = target if is_web_address(target) else "no web address"
    return f"sends requests on to {shown}, which is not followed; if it has moved there, set that as its address"


@cache
def _certificates() -> ssl.SSLContext:
    """Made once, since reading the certificates takes longer than a search on this machine."""
    import httpx

    return httpx.create_ssl_context()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="web-search-calls", daemon=True).start()
    return loop
