"""Finds the documents that an index cannot be built with, by bisection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from crag_core.base.errors import StoreUnavailable, WriteLost

MOST = 3
"""Where more documents than these are at fault, it is not the documents."""


def find_culprits(rehearse: Callable[[Collection[str]], None], ids: Sequence[str], lost: WriteLost) -> list[str]:
    """The ids for which `rehearse` raises `WriteLost` each time when given them alone, while it works for others.

    Raises `StoreUnavailable` where there are none, or many. `lost` is what all of them together raised.
    """
    culprits: list[str] = []
    has_worked = len(ids) == 1
    waiting = [ids]
    while waiting and len(culprits) <= MOST:
        part = waiting.pop()
        if not part or not _is_lost(rehearse, part):
            has_worked = has_worked or bool(part)
        elif len(part) > 1:
            waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
        elif _is_lost(rehearse, part):
            culprits += part
    if not has_worked or not 1 <= len(culprits) <= MOST:
        raise StoreUnavailable(
            f"{lost.message} No single document is at fault.",
            hint="Re-index all documents on the Documents page, or with the command reindex.",
        ) from lost
    return culprits


def _is_lost(rehearse: Callable[[Collection[str]], None], ids: Sequence[str]) -> bool:
    try:
        rehearse(ids)
    except WriteLost:
        return True
    return False
