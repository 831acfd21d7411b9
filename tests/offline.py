"""Keeps a test process on this machine: every other address is refused, loudly."""

from __future__ import annotations

import os
import socket
from typing import Any

LOCAL = ("127.0.0.1", "localhost", "::1")
_ANY_ADDRESS = (None, "", "0.0.0.0", "::")


class NetworkUsed(RuntimeError):
    """A test reached for another machine; no code under test catches this."""


def stay_local() -> None:
    """Guard the sockets of Python; proxies to nowhere hold back clients in other languages and child processes."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        os.environ[name] = os.environ[name.upper()] = "http://127.0.0.1:9"
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(LOCAL)
    for method in ("connect", "connect_ex"):
        _guard_socket(method)
    _guard_look_up()


def _guard_socket(method: str) -> None:
    original = getattr(socket.socket, method)

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family != socket.AF_UNIX and address[0] not in LOCAL:
            raise NetworkUsed(f"expected only {', '.join(LOCAL)}, found a connection to {address!r}")
        return original(self, address)

    setattr(socket.socket, method, guarded)


def _guard_look_up() -> None:
    original = socket.getaddrinfo

    def guarded(host: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in (*LOCAL, *_ANY_ADDRESS):
            raise NetworkUsed(f"expected only {', '.join(LOCAL)}, found a look-up of {name!r}")
        return original(host, *args, **options)

    socket.getaddrinfo = guarded
