"""A server of this machine that answers as it is told to, and remembers who asked for what."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    url: str
    paths: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Said:
    """`pieces` are sent one after the other, without a length, for as long as the client reads."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Callable[[], Iterable[bytes]] = lambda: ()


@contextmanager
def answering(answer: Callable[[str], Said]) -> Iterator[Asked]:
    asked = Asked("")

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server calls
            asked.paths.append(self.path)
            asked.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.rfile.read(int(self.headers.get("content-length") or 0))
            said = answer(self.path)
            with suppress(OSError):  # the client has left
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for piece in said.pieces():
                    self.wfile.write(piece)

        do_POST = do_GET

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    asked.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
