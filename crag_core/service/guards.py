"""What every request passes before it is read: the name it calls, where it comes from, its token, its size.

Plain ASGI, so that a body is refused before it is in memory and a client that leaves is heard of at once.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEGABYTE = 2**20
LARGEST_BODY = 4 * MEGABYTE
"""Bytes of a request, where `LARGEST` says nothing else."""
LARGEST: Mapping[str, int] = {"/reroute": 21 * MEGABYTE}
MOST_HELD = 1024 * MEGABYTE
"""Bytes of all requests that are being read or answered, together."""
OPEN = frozenset({"/health", "/openapi.json"})
"""Need no token."""
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
RETRY_S = 5
_HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_TOO_MUCH = (429, "Too much is being sent at the same time.", "Send it again in a minute.")
_LOG = logging.getLogger("crag.service")


class Refused(HTTPException):
    """One of those that reading a body lets through."""

    def __init__(self, status: int, error: str, hint: str) -> None:
        super().__init__(status, error)
        self.hint = hint


@dataclass(frozen=True)
class Rules:
    """No `tokens`: everybody is let in. `hosts` None: whatever name it is called by."""

    tokens: tuple[str, ...] = field(default=(), repr=False)
    hosts: frozenset[str] | None = LOCAL_NAMES

    def lets_in(self, authorization: str) -> bool:
        """In a time that tells nothing of the tokens."""
        kind, _, given = authorization.partition(" ")
        is_known = [hmac.compare_digest(_digest(given.strip()), _digest(one)) for one in self.tokens]
        return not self.tokens or (kind.lower() == "bearer" and any(is_known))


class Guard:
    """Around the whole application; every answer, its own among them, has the headers that browsers are to obey."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # a WebSocket is refused by saying nothing
            return
        started, status, size = time.perf_counter(), 0, 0

        async def say(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        async def take() -> Message:
            """Counted as it comes: a header may say less, or nothing."""
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            self._held += len(message.get("body", b""))
            if size > _most(scope):
                raise Refused(*_too_large(scope))
            if self._held > MOST_HELD:
                raise Refused(*_TOO_MUCH)
            return message

        try:
            if refused := self._refuse(scope):
                code, error, hint = refused
                await JSONResponse(error_body(error, hint, "Refused"), code, extra_headers(code))(scope, receive, say)
            else:
                await self._app(scope, take, say)
        except Exception:  # a bug: its answer is on its way, and here is where it is seen
            _LOG.exception("An error that is none of the expected ones")
            if not status:
                raise
        finally:
            self._held -= size
            _log(scope, status, time.perf_counter() - started)

    def _refuse(self, scope: Scope) -> tuple[int, str, str] | None:
        headers, rules = Headers(scope=scope), self._rules
        host, origin = headers.get("host", ""), headers.get("origin")
        length = headers.get("content-length", "0")
        if rules.hosts is not None and re.sub(r":\d+$", "", host).lower() not in rules.hosts:
            return 400, "Expected a name that this service is called by, found another Host.", "Set CRAG_SERVICE_HOSTS."
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return 403, "A page of another site may not call this service.", "Ask it from the server of that site."
        if scope["path"] not in OPEN and not rules.lets_in(headers.get("authorization", "")):
            return 401, "Expected a token, found none that is known.", "Send Authorization: Bearer TOKEN."
        if "content-length" in headers and "transfer-encoding" in headers:
            return 400, "Expected one length of the body, found Content-Length and Transfer-Encoding.", "Send either."
        if length.isdecimal() and int(length) > _most(scope):
            return _too_large(scope)
        return _TOO_MUCH if length.isdecimal() and self._held + int(length) > MOST_HELD else None


def error_body(error: str, hint: str, kind: str) -> dict[str, object]:
    return {"error": error, "hint": hint, "kind": kind}


def extra_headers(status: int) -> dict[str, str]:
    """What belongs to an answer of this status."""
    return {
        400: {"connection": "close"},
        401: {"www-authenticate": "Bearer"},
        429: {"retry-after": f"{RETRY_S}"},
        503: {"retry-after": "30"},
    }.get(status, {})


def _most(scope: Scope) -> int:
    return LARGEST.get(scope["path"], LARGEST_BODY)


def _too_large(scope: Scope) -> tuple[int, str, str]:
    return 413, f"Expected a request of at most {_most(scope) // MEGABYTE} MB, found more.", "Send it in parts."


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _log(scope: Scope, status: int, seconds: float) -> None:
    """The path as our own routes have it: any other may say anything."""
    route = getattr(scope.get("route"), "path", "(unknown)")
    made = {"method": scope["method"], "path": route, "status": status, "ms": round(1000 * seconds, 1)}
    line = " ".join(f"{name}={value}" for name, value in made.items())
    _LOG.info("[CRAG_SERVICE] %s", line, extra={"crag": {"event": "request", **made}})
