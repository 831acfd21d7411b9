"""One writer at a time over machines that share nothing but an object store: an object, written on condition.

Its holder renews it now and then. No clock is compared with that of another machine: a waiting process takes the lock
over when it was released, when its holder is a process of this machine that is gone, or when it stayed the same for
`LEASE` seconds. A holder that slept for longer (a closed laptop) learns at its next renewal that it lost the lock; what
it writes until then is whole, since every commit is, but may be there twice.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.backends.worker_lease import is_alive, is_of_this_machine, name_self

if TYPE_CHECKING:
    from obstore.store import S3Store

LEASE = 30.0  # seconds
_RENEWED = 8.0
_PATIENCE = 120.0
_LOOKED = (0.02, 0.25)
_NAME = "write.lock"


class ObjectLock:
    """Raises `StoreUnavailable` after two minutes of waiting, and obstore's errors."""

    def __init__(self, open_store: Callable[[], S3Store]) -> None:
        self._open = open_store
        # Threads of this process queue here, and not at the store.
        self._mine = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._mine:
            holding = _Holding(self._open())
            try:
                yield
            finally:
                lost = holding.end()
            if lost:
                raise StoreUnavailable(
                    "Another process took the index over while this one was writing: its lock was not renewed in time.",
                    hint="Check on the Documents page whether everything is there, and add what is missing again.",
                )


class _Holding:
    """The lock, held from its making on until `end`."""

    def __init__(self, store: S3Store) -> None:
        self._store = store
        self._owner = f"{name_self()}/{uuid4().hex[:8]}"
        self._lost = False
        self._ended = threading.Event()
        self._tag = self._acquire()
        self._renewing = threading.Thread(target=self._renew, name="index lock", daemon=True)
        self._renewing.start()

    def end(self) -> bool:
        """Release it; True where it had been lost before."""
        self._ended.set()
        self._renewing.join()
        if not self._lost:
            try:
                self._write({"e_tag": self._tag}, owner="")
            except _refused():
                self._lost = True
        return self._lost

    def _acquire(self) -> str:
        begun = seen_at = time.monotonic()
        seen = ""
        while True:
            holder, tag = self._look()
            if tag != seen:
                seen, seen_at = tag, time.monotonic()
            is_free = not holder or _is_gone(holder) or time.monotonic() - seen_at > LEASE
            if is_free:
                with suppress(*_refused()):  # somebody else was quicker
                    return self._write({"e_tag": tag} if tag else "create", self._owner)
            if time.monotonic() - begun > _PATIENCE:
                raise StoreUnavailable(
                    f"Another process has been writing to the index for over {_PATIENCE:.0f} seconds.",
                    hint="Wait for it to finish, or stop it, and try again.",
                )
            time.sleep(random.uniform(*_LOOKED))

    def _look(self) -> tuple[str, str]:
        """(who holds it, the tag of what says so); "" where nobody does, or it was never held."""
        try:
            found = self._store.get(_NAME)
        except FileNotFoundError:
            return "", ""
        with suppress(ValueError, KeyError, TypeError):
            return str(json.loads(bytes(found.bytes()))["owner"]), found.meta["e_tag"] or ""
        return "", found.meta["e_tag"] or ""

    def _write(self, mode: Any, owner: str) -> str:
        # Something new every time, since the tag is made of the content.
        body = json.dumps({"owner": owner, "written": uuid4().hex}).encode()
        return self._store.put(_NAME, body, mode=mode, use_multipart=False)["e_tag"] or ""

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED):
            try:
                self._tag = self._write({"e_tag": self._tag}, self._owner)
            except _refused():
                self._lost = True
                return
            except Exception:  # the store is away: the next renewal, or a write, reports it
                continue


def _is_gone(holder: str) -> bool:
    return is_of_this_machine(holder) and not is_alive(holder, datetime.now(UTC))


def _refused() -> tuple[type[Exception], ...]:
    from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError

    return (AlreadyExistsError, PreconditionError, NotFoundError)
