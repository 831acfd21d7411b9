"""What every JSON search server does, whatever its shape: note what was asked, answer, and fail on request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

from .local_server import LocalServer, wait_until
from .model_server import departure

_PIECE = 65_536


@dataclass(frozen=True)
class Heard:
    """One request: the parameters of its address, its headers by lower-case name, its JSON body."""

    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Said:
    """One answer before anything goes wrong with it; a `body` that is not bytes is sent as JSON."""

    body: Any
    status: int = 200
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Mishaps:
    """Switches read by every request as it is served; all off by default. They combine.

    said          this instead of the answer
    delay_s       wait before the first byte, headers included
    drip_s        send the body byte by byte, with this pause before each
    is_cut        close the connection after half of the body
    is_endless    repeat the body until the client leaves
    """

    said: Said | None = None
    delay_s: float = 0.0
    drip_s: float = 0.0
    is_cut: bool = False
    is_endless: bool = False


class JsonServer(LocalServer):
    """`heard` holds every request in order; `disconnects` counts clients that left before their answer was complete."""

    def __init__(self, method: str, path: str) -> None:
        super().__init__({(method, path): self._exchange})
        self.mishaps = Mishaps()
        self.heard: list[Heard] = []
        self.disconnects = 0
        self.bytes_sent = 0

    def answer(self, heard: Heard) -> Said:
        """What a healthy server says."""
        raise NotImplementedError

    def wait_for_disconnects(self, count: int = 1, timeout_s: float = 10.0) -> bool:
        return wait_until(lambda: self.disconnects >= count, timeout_s)

    async def _exchange(self, body: Any) -> ASGIApp:
        async def exchange(scope: Scope, receive: Receive, send: Send) -> None:
            headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
            self.heard.append(Heard(dict(parse_qsl(scope["query_string"].decode())), headers, body))
            sending = asyncio.ensure_future(self._send(scope, send))
            leaving = asyncio.ensure_future(departure(receive))
            try:
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
                elif not self.is_stopping:
                    self.disconnects += 1
            finally:
                sending.cancel()
                leaving.cancel()
                await asyncio.gather(sending, leaving, return_exceptions=True)

        return exchange

    async def _send(self, scope: Scope, send: Send) -> None:
        mishaps = self.mishaps
        said = mishaps.said or self.answer(self.heard[-1])
        body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
        await asyncio.sleep(mishaps.delay_s)
        headers = {"content-type": said.media_type, **said.headers}
        if not mishaps.is_endless:
            headers["content-length"] = str(len(body))
        listed = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": said.status, "headers": listed})
        for piece in _pieces(body[: len(body) // 2] if mishaps.is_cut else body, 1 if mishaps.drip_s else _PIECE):
            await asyncio.sleep(mishaps.drip_s)
            await self._piece(piece, send)
        while mishaps.is_endless:
            await self._piece(body, send)
        if mishaps.is_cut:
            return self.cut(scope)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _piece(self, piece: bytes, send: Send) -> None:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        self.bytes_sent += len(piece)
        await asyncio.sleep(0)  # sending to a client that has left does not wait, and would not let others in


def _pieces(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]
