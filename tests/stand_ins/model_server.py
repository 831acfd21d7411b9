"""What every model server does, whatever its wire: write, count, fail on request, notice clients that leave."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Protocol

from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from .engines import Ask, Engine, Finish
from .faults import Faults
from .local_server import Handler, LocalServer, wait_until

BROKEN_BODY = b'{"model": "cut sh'


class Wire(Protocol):
    """How one endpoint spells one reply: bytes are frames of a stream, an object is the body of a reply in one go."""

    media_type: str
    broken: bytes  # a frame that is no JSON

    def piece(self, text: str) -> bytes: ...
    def final(self, finish: Finish) -> bytes: ...
    def failure(self, message: str) -> bytes: ...
    def whole(self, text: str, finish: Finish) -> dict[str, Any]: ...
    def error(self, status: int, message: str) -> dict[str, Any]: ...


class ModelServer(LocalServer):
    """A server with an engine, faults and counts; engine and faults may be changed while it runs.

    `pieces_sent` went out to clients in streams; the engine counts what it produced.
    `disconnects` counts clients that closed the connection before their reply was complete, streamed or not.
    `active` is the number of replies being written now: one is none of them any more when its last byte goes out, since
    whoever has read it may ask again before this server has put its things away.
    """

    chat_path: str

    def __init__(self, engine: Engine, models: Sequence[str], handlers: dict[tuple[str, str], Handler]) -> None:
        super().__init__(handlers)
        self.engine = engine
        self.models = list(models)
        self.faults = Faults()
        self.disconnects = 0
        self.pieces_sent = 0
        self.active = 0

    @property
    def chat_calls(self) -> int:
        """Chat requests received, refused ones included."""
        return sum(path == self.chat_path for path, _ in self.requests)

    def wait_for_disconnects(self, count: int = 1, timeout_s: float = 10.0) -> bool:
        """Whether that many clients have left by then. Blocks: use `asyncio.to_thread` in a coroutine."""
        return wait_until(lambda: self.disconnects >= count, timeout_s)


class Answer:
    """One reply on its way out, as an ASGI response.

    As with real servers nothing is sent before the first piece exists, and a client that leaves ends the generation.
    """

    def __init__(self, server: ModelServer, wire: Wire, ask: Ask, *, is_streamed: bool) -> None:
        self.server = server
        self.wire = wire
        self.ask = ask
        self.is_streamed = is_streamed
        self.is_begun = False
        self._is_active = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self._end()
            await send(message)

        self._is_active = True
        self.server.active += 1
        writing = asyncio.ensure_future(self._write(scope, receive, counted))
        leaving = asyncio.ensure_future(departure(receive))
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
            elif not self.server.is_stopping:
                self.server.disconnects += 1
        finally:
            writing.cancel()
            leaving.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)
            self._end()

    def _end(self) -> None:
        self.server.active -= self._is_active
        self._is_active = False

    async def _write(self, scope: Scope, receive: Receive, send: Send) -> None:
        faults = self.server.faults
        if faults.delay_s:
            await asyncio.sleep(faults.delay_s)
        if faults.status is not None:
            return await self._refuse(faults.status, f"fault: status {faults.status}", scope, receive, send)
        texts: list[str] = []
        try:
            async with aclosing(self.server.engine.write(self.ask)) as pieces:
                async for piece in pieces:
                    if faults.die_after == len(texts):
                        self._end()
                        return self.server.cut(scope)
                    if faults.broken_after == len(texts):
                        return await self._break(scope, receive, send)
                    if faults.error_after == len(texts):
                        raise RuntimeError("fault: the model runner has stopped")
                    if isinstance(piece, Finish):
                        return await self._finish("".join(texts), piece, scope, receive, send)
                    texts.append(piece)
                    if self.is_streamed:
                        await self._frame(self.wire.piece(piece), send)
                        self.server.pieces_sent += 1
        except Exception as error:  # a real server, too, turns the failure of its engine into a message
            if not self.is_begun:
                return await self._refuse(500, str(error), scope, receive, send)
            await self._frame(self.wire.failure(str(error)), send, is_last=True)

    async def _finish(self, text: str, finish: Finish, scope: Scope, receive: Receive, send: Send) -> None:
        if self.is_streamed:
            return await self._frame(self.wire.final(finish), send, is_last=True)
        await JSONResponse(self.wire.whole(text, finish))(scope, receive, send)

    async def _break(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.is_streamed:
            return await self._frame(self.wire.broken, send, is_last=True)
        await Response(BROKEN_BODY, media_type="application/json")(scope, receive, send)

    async def _refuse(self, status: int, message: str, scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse(self.wire.error(status, message), status)(scope, receive, send)

    async def _frame(self, frame: bytes, send: Send, *, is_last: bool = False) -> None:
        if not self.is_begun:
            self.is_begun = True
            headers = [(b"content-type", self.wire.media_type.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        # The last frame ends the body in the same write: a client that leaves right after it has left nothing early.
        await send({"type": "http.response.body", "body": frame, "more_body": not is_last})


async def departure(receive: Receive) -> None:
    """Return when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
