"""One address in front of several servers, as nginx, HAProxy or Traefik with sticky sessions would be.

A visitor stays with one server by a cookie, WebSockets included. One that takes no connection is left out: its visitors
go to the next, and stay there.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from itertools import cycle
from typing import Self
from urllib.parse import urlsplit

COOKIE = "front_door"
_HOST = "127.0.0.1"
_HEAD_END = b"\r\n\r\n"
_CHUNK = 2**16
_CONNECT_S = 1.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class FrontDoor(AbstractContextManager["FrontDoor"]):
    """Newcomers are given to the servers in turn; the cookie of a visitor is the number of his server, from 0."""

    def __init__(self, servers: Sequence[str]) -> None:
        """`servers` are URLs without a path."""
        self._addresses = [(parts.hostname or _HOST, parts.port or 80) for parts in map(urlsplit, servers)]
        self._turns = cycle(range(len(servers)))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="front door", daemon=True)
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://localhost:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, _HOST, 0), self._loop
        ).result()
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *exc_info: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        open_ones = asyncio.all_tasks() - {asyncio.current_task()}
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection, a WebSocket being one; what follows the two heads is passed on as it comes."""
        with suppress(OSError, asyncio.IncompleteReadError):  # either side is gone
            head = await reader.readuntil(_HEAD_END)
            given = re.search(rb"(?mi)^cookie:.*\b%s=(\d+)" % COOKIE.encode(), head)
            found = await self._connect(next(self._turns) if given is None else int(given[1]))
            if found is None:
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                number, (behind, to_it) = found
                to_it.write(_closing(head))
                is_new = given is None or int(given[1]) != number
                await asyncio.gather(_pass_on(reader, to_it), _answer(behind, writer, number if is_new else None))
        writer.close()

    async def _connect(self, wanted: int) -> tuple[int, Streams] | None:
        """A way to the server that is wanted, or to the next that takes connections, with its number."""
        for step in range(len(self._addresses)):
            number = (wanted + step) % len(self._addresses)
            with suppress(OSError, TimeoutError):
                return number, await asyncio.wait_for(asyncio.open_connection(*self._addresses[number]), _CONNECT_S)
        return None


def _closing(head: bytes) -> bytes:
    """A head that asks for no second request on its connection, unless it is of a WebSocket."""
    if re.search(rb"(?mi)^upgrade:", head):
        return head
    return _with(re.sub(rb"(?mi)^connection:.*\r\n", b"", head), "Connection: close")


def _with(head: bytes, line: str) -> bytes:
    return head.removesuffix(b"\r\n") + line.encode() + b"\r\n\r\n"


async def _answer(behind: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int | None) -> None:
    """Pass on what a server answers; `number`: with the cookie that says so from now on."""
    with suppress(asyncio.IncompleteReadError):  # it died meanwhile
        head = _closing(await behind.readuntil(_HEAD_END))
        if number is not None:
            head = _with(head, f"Set-Cookie: {COOKIE}={number}; Path=/; HttpOnly; SameSite=Lax")
        writer.write(head)
    await _pass_on(behind, writer)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_CHUNK):
            writer.write(piece)
            await writer.drain()
    writer.close()
