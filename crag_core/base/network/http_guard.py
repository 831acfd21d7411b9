"""Limits on every HTTP request: no forbidden address, no redirect, a bounded reply.

Hooks for `httpx` clients, which the clients of Ollama and OpenAI are made of. Names are looked up before a request is
sent; where a proxy is set in the environment it does that, and names are its business. Whoever answers a look-up with
one address now and another a moment later is found by the address that the connection was made to, before anything of
the reply is read. A page that a search found is stricter still: its name is looked up once, and the connection made to
that very address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import httpx

from crag_core.base.network.addresses import why_refused

if TYPE_CHECKING:
    import ssl

LARGEST_LIST = 5_000_000
LARGEST_REPLY = 20_000_000  # bytes of one reply of a model, streamed or not; a long one has some hundred thousand
Refusal = Callable[[str], str]  # why nothing may be sent to a host; "": it may
_PLAIN = "identity"  # a packed reply of a few kilobytes can unpack to gigabytes


class NotAsked(httpx.RequestError):
    """A request was not sent, or its reply not read; the message goes on where the server's name begins a sentence."""


def hooks(limit: int, seconds: float) -> dict[str, Any]:
    """Arguments for an `httpx.AsyncClient`: a reply ends after `limit` bytes and `seconds` from its first byte."""

    async def on_request(request: httpx.Request) -> None:
        request.headers["accept-encoding"] = _PLAIN
        await check_request(request)

    async def on_response(response: httpx.Response) -> None:
        check_peer(response)
        if response.has_redirect_location:
            raise NotAsked("sends requests on to another address, which is not followed")
        _check_packing(response)
        response.stream = _Bounded(response.stream, limit, seconds)

    return _bounds(on_request, on_response)


def page_hooks(limit: int, seconds: float, why: Refusal) -> dict[str, Any]:
    """The same for pages at addresses that somebody else names; `why` a host is refused. Redirects are not looked at.

    The connection goes to the address that was looked up, so that no second look-up can give another one. None is used
    twice, since two names may share an address, and its certificate is that of one.
    """

    async def on_request(request: httpx.Request) -> None:
        request.headers.update({"accept-encoding": _PLAIN, "connection": "close"})
        host = request.url.host
        _check_found([host], why)
        if _is_asked_here(request.url):
            found = await asyncio.to_thread(_look_up, host)
            _check_found(found, why)
            if found and not _has_proxy_for(request.url):
                request.extensions["sni_hostname"] = host
                request.url = request.url.copy_with(host=found[0])

    async def on_response(response: httpx.Response) -> None:
        check_peer(response, why_refused if _has_proxy_for(response.request.url) else why)
        _check_packing(response)
        response.stream = _Bounded(response.stream, limit, seconds)

    return _bounds(on_request, on_response)


def _bounds(on_request: object, on_response: object) -> dict[str, Any]:
    found = {"request": [on_request], "response": [on_response]}
    return {"event_hooks": found, "follow_redirects": False, "verify": certificates()}


async def check_request(request: httpx.Request) -> None:
    """Raises `NotAsked` for an address that is never asked."""
    _check_found([request.url.host])
    if _is_asked_here(request.url):
        _check_found(await asyncio.to_thread(_look_up, request.url.host))


def check_peer(response: httpx.Response, why: Refusal | None = None) -> None:
    """Raises `NotAsked` where the connection went to such an address after all."""
    stream = response.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream else None
    if isinstance(peer, tuple) and peer:
        _check_found([str(peer[0])], why)


def refusal_in(error: BaseException) -> str:
    """What a `NotAsked` says that was raised, or that another error was raised from; "": there is none."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, NotAsked):
        found = found.__cause__ or found.__context__
    return str(found) if found else ""


@cache
def certificates() -> ssl.SSLContext:
    """Made once, since reading the certificates takes longer than many a request."""
    return httpx.create_ssl_context()


def _check_found(hosts: list[str], why: Refusal | None = None) -> None:
    for host in hosts:
        if refusal := (why or why_refused)(host):
            raise NotAsked(f"was not asked, since {refusal}")


def _check_packing(response: httpx.Response) -> None:
    if response.headers.get("content-encoding", _PLAIN).lower() != _PLAIN:
        raise NotAsked("answered in a packing that it was not asked for")


def _is_asked_here(url: httpx.URL) -> bool:
    try:
        ipaddress.ip_address(url.host)
        return False
    except ValueError:
        return not _has_proxy_for(url) or bool(proxy_bypass(url.host))


def _has_proxy_for(url: httpx.URL) -> bool:
    proxies = getproxies()
    return url.scheme in proxies or "all" in proxies


def _look_up(host: str) -> list[str]:
    """Addresses of a name; none where it has none, which the connection then tells."""
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []


class _Bounded(httpx.AsyncByteStream):
    def __init__(self, stream: Any, limit: int, seconds: float) -> None:
        self._stream = stream
        self._limit = limit
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise NotAsked(f"answered with more than {self._limit / 1_000_000:g} MB; the rest is not read")
            if time.monotonic() > self._end:
                raise NotAsked(f"went on answering for more than {self._seconds:g} s; the rest is not read")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
