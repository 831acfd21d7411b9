"""A web application on a free port of this machine, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Self
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

HOST = "127.0.0.1"
START_S = 10.0

Handler = Callable[[Any], Awaitable[ASGIApp]]


class LocalServer:
    """Serves `(method, path) -> handler`; a handler takes the decoded body and returns an ASGI response.

    `requests` holds every (path, body) in order of arrival: JSON as objects, forms as dicts, `None` for no body.
    The port is chosen once, so `stop()` and `start()` again look to a client like a server that died and came back.
    """

    def __init__(self, handlers: dict[tuple[str, str], Handler]) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.is_stopping = False
        self._app = Starlette(
            routes=[
                Route(path, self._recorded(handler), methods=[method]) for (method, path), handler in handlers.items()
            ]
        )
        self._port = 0
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Base address without a trailing slash; valid from the first `start()` on, also while stopped."""
        return f"http://{HOST}:{self._port}"

    def start(self) -> None:
        """Return once connections are accepted. Raises `RuntimeError` if that takes more than ten seconds."""
        listener = socket.socket()
        # A connection of the life before may still be in TIME_WAIT on this port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, self._port))
        self._port = listener.getsockname()[1]
        self.is_stopping = False
        config = uvicorn.Config(self._app, http="h11", lifespan="off", log_config=None, log_level="critical")
        self._uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, args=(listener,), name=type(self).__name__, daemon=True)
        self._thread.start()
        if not wait_until(lambda: self._uvicorn.started, START_S):
            raise RuntimeError(f"{type(self).__name__} did not start within {START_S} s")

    def stop(self) -> None:
        """Cut every open connection and free the port: clients see what a killed process shows them."""
        if self._thread is None:
            return
        self.is_stopping = True
        self._loop.call_soon_threadsafe(self._die)
        self._thread.join(START_S)
        self._thread = None

    def cut(self, scope: Scope) -> None:
        """Close the connection a request came in on; what was written to it before still arrives."""
        for connection in list(self._uvicorn.server_state.connections):
            if getattr(connection, "client", None) == tuple(scope["client"]):
                connection.transport.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _serve(self, listener: socket.socket) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            self._serving = self._loop.create_task(self._uvicorn.serve(sockets=[listener]))
            with suppress(asyncio.CancelledError):
                await self._serving

        asyncio.run(serve())

    def _die(self) -> None:
        for server in self._uvicorn.servers:
            server.close()
        for connection in list(self._uvicorn.server_state.connections):
            connection.transport.abort()
        # Its own way out is polite and takes a fifth of a second, too long for something done in every test.
        self._serving.cancel()

    def _recorded(self, handler: Handler) -> Callable[[Request], Awaitable[ASGIApp]]:
        async def endpoint(request: Request) -> ASGIApp:
            body = decode_body(request.headers.get("content-type", ""), await request.body())
            self.requests.append((request.url.path, body))
            return await handler(body)

        return endpoint


def decode_body(content_type: str, body: bytes) -> Any:
    """A form as a dict, anything else as JSON, nothing as `None`."""
    if not body:
        return None
    if content_type.startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(body.decode(), keep_blank_values=True))
    return json.loads(body)


def wait_until(is_true: Callable[[], bool], timeout_s: float) -> bool:
    """Ask every 2 ms; `False` after `timeout_s`. Blocks: use `asyncio.to_thread` in a coroutine."""
    end = time.monotonic() + timeout_s
    while not is_true():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True
