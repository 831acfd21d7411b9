"""An index in an object store, shared by the processes of many machines: LanceDB tables, and files beside them.

Its address and keys come from the usual variables (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_REGION; AWS_ENDPOINT_URL for one that is not Amazon's), which LanceDB and obstore both read.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from crag_core.base.errors import BadRecord, StoreUnavailable
from crag_core.retrieval.backends.backend import DOCUMENT_ID, check_id, check_original, lock_taken
from crag_core.retrieval.backends.lance.backend import LanceBackend, Remote, Send
from crag_core.retrieval.backends.lance.tables import LanceTables, is_of_engine
from crag_core.retrieval.backends.worker_lease import is_alive, is_of_this_machine, name_work

if TYPE_CHECKING:
    from obstore.store import S3Store

_URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[\w.=-]+)*)/?")
# LanceDB tries each request several times over: a store that is silent costs about fifteen times as much.
_TIMEOUT, _CONNECT, _RETRIES = "20s", "5s", 1
# A file may have 50 MB.
_FILE_TIMEOUT = "120s"
# The first request of a process, which asks for nothing, only whether anybody answers.
_LOOK_TIMEOUT = "10s"
_ADVICE = (
    "Check the bucket, AWS_REGION, the keys and, for a store that is not Amazon's, AWS_ENDPOINT_URL; what was indexed "
    "before is safe."
)
_FOLDER = "originals"
# Up to so many sizes are asked for one by one; more are listed, a thousand with one request.
_ASKED_SINGLY = 20
LEASE = 30.0  # seconds
_RENEWED = 8.0
_PATIENCE = 120.0
_LOOKED = (0.02, 0.25)
_NAME = "write.lock"


class ObjectBackend(LanceBackend):
    """A `Backend`, written to by `send`, else here; making one touches no network.

    Raises `BadRecord` for a URL of no use.
    """

    def __init__(self, url: str, send: Send | None = None) -> None:
        found = _URL.fullmatch(url)
        if not found:
            raise BadRecord(
                "CRAG_STORE: expected s3://BUCKET or s3://BUCKET/FOLDER, found something else behind s3://.",
                hint="Keys and endpoint are set by AWS_… variables, not in the URL.",
            )
        self._bucket, self._prefix = found[1], found[2].strip("/")
        self._store: S3Store | None = None
        tables = ObjectTables(url.rstrip("/"), partial(self._make, _LOOK_TIMEOUT))
        super().__init__(tables, Remote(send, url, "") if send else None)
        self.originals = ObjectOriginals(self._open, tables)
        self._lock = ObjectLock(self._open)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """An object that its holder renews; free once released, or not renewed for half a minute."""
        with ExitStack() as held:
            with self._tables.explain():
                held.enter_context(self._lock.held())
            yield

    def _open(self) -> S3Store:
        if self._store is None:
            self._store = self._make(_FILE_TIMEOUT)
        return self._store

    def _make(self, timeout: str) -> S3Store:
        from obstore.store import S3Store

        return S3Store(
            self._bucket,
            prefix=self._prefix or None,
            client_options={"timeout": timeout, "connect_timeout": _CONNECT, "allow_http": _is_plain()},
            retry_config={"max_retries": _RETRIES},
        )


class ObjectTables(LanceTables):
    """LanceDB tables in an object store."""

    def __init__(self, url: str, make_store: Callable[[], S3Store]) -> None:
        self._make_store = make_store
        options = {"timeout": _TIMEOUT, "connect_timeout": _CONNECT, "client_max_retries": str(_RETRIES)}
        super().__init__(url, url, {**options, "allow_http": str(_is_plain()).lower()})

    @contextmanager
    def explain(self) -> Iterator[None]:
        try:
            yield
        # LanceDB raises plain errors from its Rust core, obstore its own; both quote the whole request.
        except BaseException as error:
            from obstore.exceptions import BaseError

            if not is_of_engine(error) and not isinstance(error, BaseError):
                raise
            message = f"The index at {self.place} cannot be used ({_describe(error)})."
            raise StoreUnavailable(message, hint=_ADVICE) from error

    def _connect(self) -> Any:
        if self._connection is None:
            # Whether anybody answers at all is found out sooner so.
            with suppress(FileNotFoundError):
                self._make_store().head("anything")
        return super()._connect()

    def _exists(self, name: str) -> bool:
        # Asking costs as much as opening; a table that was opened is gone only when its index version is.
        if name not in self._opened:
            try:
                self._opened[name] = self._connect().open_table(name)
            except ValueError as error:
                if "not found" in str(error).lower():
                    return False
                raise
        return True


def _is_plain() -> bool:
    """Whether the store was named with http://, which is not taken for an oversight then."""
    named = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
    return named.startswith("http://")


def _describe(error: BaseException) -> str:
    """What went wrong, without the request that it went wrong in."""
    text = " ".join(str(error).split()).partition(", /")[0]
    for sign in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "NoSuchBucket", "Forbidden"):
        if sign in text:
            return sign
    if re.search(r"connect|timed out|timeout|dns|sending request", text, re.IGNORECASE):
        return "it does not answer"
    return re.sub(r"https?://\S+", "…", text)[:200] or type(error).__name__


class ObjectOriginals:
    """`Originals`; `tables` explains the faults."""

    def __init__(self, open_store: Callable[[], S3Store], tables: LanceTables) -> None:
        self._open = open_store
        self._tables = tables

    def keep(self, document_id: str, content: bytes) -> None:
        with self._tables.explain():
            if self._size(document_id) != len(content):
                self._open().put(_path(document_id), content)

    def read(self, document_id: str) -> bytes:
        with self._tables.explain():
            try:
                content = bytes(self._open().get(_path(document_id)).bytes())
            except FileNotFoundError:
                content = None
        return check_original(document_id, content)

    def sizes(self, document_ids: Collection[str]) -> dict[str, int]:
        with self._tables.explain():
            if len(document_ids) <= _ASKED_SINGLY:
                found = {one: self._size(one) for one in document_ids}
                return {one: size for one, size in found.items() if size is not None}
            there = self._list()
            return {one: there[one] for one in document_ids if one in there}

    def drop(self, document_ids: Iterable[str]) -> None:
        with self._tables.explain():
            if paths := [_path(one) for one in document_ids]:
                self._open().delete(paths)

    def tidy(self, known: Collection[str]) -> None:
        self.drop([one for one in self._list() if one not in known])

    def _size(self, document_id: str) -> int | None:
        try:
            return self._open().head(_path(document_id))["size"]
        except FileNotFoundError:
            return None

    def _list(self) -> dict[str, int]:
        with self._tables.explain():
            found = [one for batch in self._open().list(prefix=_FOLDER) for one in batch]
            sizes = {one["path"].rpartition("/")[2]: one["size"] for one in found}
            return {name: size for name, size in sizes.items() if DOCUMENT_ID.fullmatch(name)}


def _path(document_id: str) -> str:
    return f"{_FOLDER}/{check_id(document_id)}"


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
        self._owner = name_work()
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
                raise lock_taken(_PATIENCE)
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
