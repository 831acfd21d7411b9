"""Finds the documents that an index cannot be built with, by bisection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from crag_core.base.errors import StoreUnavailable, WriteLost

MOST = 3
"""Where more documents than these are at fault, it is not the documents."""


def find_culprits(rehearse: Callable[[Collection[str]], None], ids: Sequence[str], lost: WriteLost) -> list[str]:
    """The ids with which alone `rehearse` raises `WriteLost` each time, while it works with others.

    Raises `StoreUnavailable` where there are none, or many. `lost` is how it is known that all of them together do.
    """
    found: list[str] = []
    is_ever_done = len(ids) == 1
    waiting = [ids]
    while waiting and len(found) <= MOST:
        some = waiting.pop()
        if not some or not _is_lost(rehearse, some):
            is_ever_done = is_ever_done or bool(some)
        elif len(some) > 1:
            waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
        elif _is_lost(rehearse, some):
            found += some
    if not is_ever_done or not 1 <= len(found) <= MOST:
        raise StoreUnavailable(
            f"{lost.message} No single document is at fault.",
            hint="Make all chunks anew on the Documents page, or with the command reindex.",
        ) from lost
    return found


def _is_lost(rehearse: Callable[[Collection[str]], None], ids: Sequence[str]) -> bool:
    try:
        rehearse(ids)
    except WriteLost:
        return True
    return False
