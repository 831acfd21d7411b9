"""Asks several model servers at the same time what they have, so that those that are away cost one time-out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from crag_core.llms.ollama_import import import_ollama
from crag_core.llms.servers import ServerState

Look = Callable[[], ServerState]
"""Asks one server; never raises for one that is away."""

PATIENCE = 3.0
"""Seconds for all servers together: a look has a time-out of its own, but for each of its steps."""


def look_at_all(
    looks: Sequence[Look], too_late: Sequence[ServerState], patience: float = PATIENCE
) -> list[ServerState]:
    """What each server said, in order; `too_late` stands for those that have said nothing after `patience` seconds."""
    import httpx  # noqa: F401  # importing is not what the servers are waited for

    import_ollama()
    # Daemons: a server that sends its answer byte by byte must not keep the program from ending.
    futures: list[Future[ServerState]] = [Future() for _ in looks]
    for look, future in zip(looks, futures, strict=True):
        threading.Thread(target=_ask, args=(look, future), name="model-servers", daemon=True).start()
    wait(futures, timeout=patience)
    return [future.result() if future.done() else late for future, late in zip(futures, too_late, strict=True)]


def _ask(look: Look, future: Future[ServerState]) -> None:
    try:
        future.set_result(look())
    except BaseException as bug:  # raised where the answers are read
        future.set_exception(bug)
