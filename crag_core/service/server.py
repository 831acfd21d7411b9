"""The server process: serves until the program ends, and then ends every run as stopped and kept."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from ipaddress import ip_address
from threading import Event, Thread

import uvicorn

from crag_core.base.concurrency.shutdown import at_end, is_ending
from crag_core.base.errors import PortUnavailable, WrongUse
from crag_core.service.application import make_application
from crag_core.service.guards import Guard, Rules
from crag_core.service.service import Service

_LAST_WORDS_S = 2
"""How long answers may take that are being sent when the program ends."""
_LOG = logging.getLogger("crag.service")


class Serving:
    """In a thread of its own, since signals are for `base.concurrency.shutdown`, and not for uvicorn."""

    def __init__(self, service: Service, rules: Rules, listener: socket.socket) -> None:
        config = uvicorn.Config(
            Guard(make_application(service, rules), rules),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # whoever sends them could take anybody's place in line
            ws="none",
            timeout_graceful_shutdown=_LAST_WORDS_S,
        )
        self._server = uvicorn.Server(config)
        self._listener = listener
        self._over = Event()
        self._thread = Thread(target=self._serve, name="service", daemon=True)

    def start(self) -> None:
        self._leave = at_end(lambda: None, self._finish, is_last=True)
        self._thread.start()

    def stop(self) -> None:
        """And wait for the end."""
        self._finish(2.0 * _LAST_WORDS_S)
        self._leave()

    def wait(self) -> None:
        """Until it has broken off; not when the program ends, which is for the signal that asked for that."""
        while not self._over.wait(1.0):
            pass
        while is_ending():
            time.sleep(1.0)

    def _serve(self) -> None:
        try:
            asyncio.run(self._server.serve(sockets=[self._listener]))
        except Exception:
            _LOG.exception("the server broke off")
        finally:
            self._over.set()

    def _finish(self, seconds: float) -> None:
        """After the runs, so that whoever asked is told that they were stopped."""
        self._server.should_exit = True
        self._over.wait(seconds)


def listen(host: str, port: int, *, only_here: bool) -> socket.socket:
    """Raises `PortUnavailable`; with `only_here` `WrongUse` for an address that other machines reach."""
    try:
        family, _, _, _, (address, *_) = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if only_here and not ip_address(str(address)).is_loopback:
            raise WrongUse(
                f"Without a token the service is for this machine only, and others reach {host}.",
                hint="Set CRAG_SERVICE_TOKEN (openssl rand -hex 24), or leave --host out.",
            )
        return socket.create_server((str(address), port), family=family, backlog=512)
    except OSError as error:
        raise PortUnavailable(
            f"The service cannot listen at {host}, port {port}: {error.strerror or error}.",
            hint="Name a free port with --port, and an address of this machine with --host.",
        ) from error
