"""Who is at work on a document, so that the next start can tell work under way from work that a kill left."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

LEASE = timedelta(minutes=5)
"""How long a process of another machine counts as alive after it last said so; it should say so much more often."""


@cache
def _machine() -> str:
    """Its name, with a sign that tells it from others of that name, and from containers that count their own processes.

    The same after the machine was started anew.
    """
    told = []
    with suppress(OSError):
        told.append(Path("/etc/machine-id").read_text("utf-8").strip())
    with suppress(OSError):
        told.append(os.readlink("/proc/self/ns/pid"))
    sign = hashlib.sha256("|".join(told).encode()).hexdigest()[:8]
    return f"{platform.node()}-{sign}".replace("/", "-")


@cache
def name_self() -> str:
    """This process: the machine, its number there, and when it started, since numbers are given again."""
    import psutil

    return f"{_machine()}/{os.getpid()}/{psutil.Process().create_time():.0f}"


def is_of_this_machine(owner: str) -> bool:
    return owner.partition("/")[0] == _machine()


def is_alive(owner: str, said_at: datetime, now: datetime | None = None) -> bool:
    """Whether the process of `owner`, which last spoke at `said_at`, is there; on another machine by its lease.

    `owner` is what `name_self` gave there, with anything after another "/".
    """
    import psutil

    node, number, started = [*owner.split("/"), "", "", ""][:3]
    if node != _machine() or not number.isdigit():
        return (now or datetime.now(UTC)) - said_at < LEASE
    try:
        return f"{psutil.Process(int(number)).create_time():.0f}" == started
    except psutil.Error:
        return False
