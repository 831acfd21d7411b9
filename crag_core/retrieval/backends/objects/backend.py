"""An index in an object store, shared by the processes of many machines: LanceDB tables, and files beside them.

Its address and keys come from the usual variables (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_REGION; AWS_ENDPOINT_URL for one that is not Amazon's), which LanceDB and obstore both read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from crag_core.base.errors import BadRecord, StoreUnavailable
from crag_core.retrieval.backends.lance.backend import LanceBackend
from crag_core.retrieval.backends.lance.remote_tables import Remote
from crag_core.retrieval.backends.lance.tables import LanceTables, is_of_engine
from crag_core.retrieval.backends.lance.write_protocol import Send
from crag_core.retrieval.backends.objects.lock import ObjectLock
from crag_core.retrieval.backends.objects.originals import ObjectOriginals

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
