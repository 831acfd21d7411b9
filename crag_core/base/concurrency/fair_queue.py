"""A queue that serves its clients in turn, and the items of each in order.

A run with twenty calls is one party, and so is one with a single call: each gets a turn before either gets another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Client = TypeVar("Client", bound=Hashable)
Item = TypeVar("Item")


class FairQueue(Generic[Client, Item]):
    """Not safe to share between threads: whoever owns it takes care of that.

    Between two turns of one party every other one that could have had one meanwhile gets one. Who comes goes to the
    end of the round, so nobody is overtaken by somebody who came later and has had as many turns.
    """

    def __init__(self) -> None:
        self._waiting: dict[Client, list[Item]] = {}  # in the order of their next turns; no list is empty

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[Item]:
        """All that wait, in no order that means anything."""
        return (item for items in self._waiting.values() for item in items)

    def join(self, client: Client, item: Item) -> None:
        self._waiting.setdefault(client, []).append(item)

    def leave(self, client: Client, item: Item) -> bool:
        """Whether it waited at all."""
        items = self._waiting.get(client, [])
        if item not in items:
            return False
        items.remove(item)
        if not items:
            del self._waiting[client]
        return True

    def next(self, is_possible: Callable[[Item], bool] = lambda item: True) -> Item | None:
        """Takes out the next one that can have its turn now; who cannot keeps its place. None: nobody can."""
        for client, items in self._waiting.items():
            item = next(filter(is_possible, items), None)
            if item is not None:
                items.remove(item)
                del self._waiting[client]
                if items:
                    self._waiting[client] = items
                return item
        return None

    def ahead(self, client: Client, item: Item | None = None) -> int | None:
        """How many get their turn before `item`, or before the party's first; None: it does not wait.

        As things stand: if nobody comes or leaves, and each can have its turn when it is next.
        """
        own = self._waiting.get(client, [])
        if not own or (item is not None and item not in own):
            return None
        rounds = 0 if item is None else own.index(item)
        count, is_before = rounds, True
        for other, items in self._waiting.items():
            if other == client:
                is_before = False
                continue
            count += min(len(items), rounds + is_before)
        return count
