"""Database URLs, their passwords hidden, and a time-out for a blocked read, by shutting its socket down."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Timer
from typing import TYPE_CHECKING

from crag_core.base.errors import BadRecord
from crag_core.base.network.drivers import check_installed

if TYPE_CHECKING:
    from sqlalchemy import URL


_PLAIN = re.compile(r"^postgres(?:ql)?://")
ESCAPE = "Write the signs / # ? @ : % of a password as %2F %23 %3F %40 %3A %25."
_HOST = re.compile(r"[\w.-]*|[0-9A-Fa-f:.]*(%\w+)?")


def show_place(setting: str) -> str:
    """As much of it as surely holds no password."""
    if re.fullmatch(r"[\w./-]{1,40}", setting):
        return repr(setting)
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://", setting)
    return f"a URL that starts with {scheme[0]}" if scheme else "something else"


def driver_options(address: URL, seconds: int) -> dict[str, object]:
    """For the driver that is installed: how long it tries to connect, unless the URL says so, and no prepared
    statements, which do not survive the usual poolers.
    """
    if address.drivername != "postgresql+psycopg":
        return {}
    options: dict[str, object] = {"prepare_threshold": None}
    return options if "connect_timeout" in address.query else {**options, "connect_timeout": seconds}


def read_postgres_url(text: str, setting: str) -> URL:
    """Raises `BadRecord`, in which nothing of the URL is quoted."""
    check_installed(setting, "psycopg", "'psycopg[binary]'")
    import psycopg
    from psycopg.conninfo import make_conninfo
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        text.encode("utf-8")
        url = make_url(_PLAIN.sub("postgresql+psycopg://", text))  # else SQLAlchemy would look for another driver
        # A bare "@" in a password, say, makes what follows it a part of the host, which is shown.
        if not _HOST.fullmatch(url.host or "") or re.search("[@/]", url.database or ""):
            raise ValueError("expected a host and the name of a database")
        _, options = url.get_dialect()().create_connect_args(url)
        make_conninfo(**options)  # complains of options that it does not know
    except (ArgumentError, ValueError, TypeError, psycopg.Error):
        # Their own words may quote a piece of the password.
        raise BadRecord(
            f"{setting}: expected postgresql://[user:password@]host[:port]/database; found a URL that cannot be read, "
            "not shown because of its password.",
            hint=ESCAPE,
        ) from None
    return url


def name_of(address: URL) -> str:
    host = address.host or ""
    place = f"[{host}]" if ":" in host else host
    port = f":{address.port}" if address.port else ""
    return f"{address.get_backend_name()}://{place}{port}/{address.database or ''}"


def hide_password(text: str, address: URL) -> str:
    """And the name of the user, in what a server or a driver says."""
    for secret in (address.password, address.query.get("password")):
        if secret:
            text = text.replace(str(secret), "…")
    return re.sub(rf"\b{re.escape(address.username)}\b", "…", text) if address.username else text


@contextmanager
def limited(fileno: int, seconds: float, faults: type[Exception]) -> Iterator[None]:
    """Cut the line `fileno` after `seconds`; what the driver then raises, one of `faults`, becomes a `TimeoutError`."""
    is_late = Event()

    def cut() -> None:
        is_late.set()
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    # A name of its own for the line: the number of the driver's may be another's by then.
    line = socket.fromfd(fileno, socket.AF_INET, socket.SOCK_STREAM)
    timer = Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except faults:
        if is_late.is_set():
            raise TimeoutError(f"no reply within {seconds:g} s") from None
        raise
    finally:
        timer.cancel()
        line.close()
