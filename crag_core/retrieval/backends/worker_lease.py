"""Leases of workers on documents: is the work still running, or did a kill leave it behind?"""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from uuid import uuid4

LEASE = timedelta(minutes=5)
"""How long a process of another machine counts as alive after its last sign; it should give one much more often."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@cache
def _machine() -> str:
    """Its name, with a suffix that no other machine of that name has, nor a container with process ids of its own.

    The same after a restart of the machine.
    """
    message = []
    with suppress(OSError):
        message.append(Path("/etc/machine-id").read_text("utf-8").strip())
    with suppress(OSError):
        message.append(os.readlink("/proc/self/ns/pid"))
    sign = hashlib.sha256("|".join(message).encode()).hexdigest()[:8]
    return f"{platform.node()}-{sign}".replace("/", "-")


@cache
def name_self() -> str:
    """This process: the machine, its number there, and when it started, since numbers are given again."""
    return f"{_machine()}/{os.getpid()}/{_started(os.getpid())}"


def name_work() -> str:
    """A piece of work of this process, as the owner of what it has begun."""
    return f"{name_self()}/{uuid4().hex[:8]}"


def is_of_this_machine(owner: str) -> bool:
    return owner.partition("/")[0] == _machine()


def is_alive(owner: str, seen_at: datetime, now: datetime | None = None) -> bool:
    """Whether the process of `owner`, which gave its last sign at `seen_at`, is alive; on another machine by its lease.

    `owner` is what `name_self` or `name_work` gave there.
    """
    import psutil

    node, number, started = [*owner.split("/"), "", "", ""][:3]
    if node != _machine() or not number.isdigit():
        # Either way: a sign from the future, of before a clock was put back, must not hold until that future comes.
        return abs((now or datetime.now(UTC)) - seen_at) < LEASE
    try:
        return _started(int(number)) == started
    except (psutil.Error, OSError):
        return False


def _started(number: int) -> str:
    """When a process started, by no clock that can be set: in ticks since the machine did, and which start that was.

    Elsewhere than on Linux by the clock. Raises `OSError` or psutil's error where there is no such process.
    """
    import psutil

    if not _BOOT.exists():
        return f"{psutil.Process(number).create_time():.0f}"
    # The name of the program stands in brackets and may hold brackets itself.
    message = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return f"{message[19]}-{_BOOT.read_text('utf-8')[:8]}"
