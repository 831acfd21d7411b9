"""A retriever of the user's own in the application: asked within a time limit, its errors named, no password shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from crag_core.base.errors import CragError, StoreUnavailable

Value = TypeVar("Value")
_MAY_BE_SECRET = re.compile(r"\S*@|((?:password|passwd|pwd|secret|token|api_?key)['\"]?\s*[=:]\s*)\S+", re.IGNORECASE)
_LONGEST = 300  # characters of an error


class OwnRetriever(BaseRetriever):
    """Finds what the retriever that `open_it` gives finds, in its order; the first `similarity_top_k` of it are used.

    `target` is its name in the setting `variable`; `tell` is given what was wrong at each use, "": nothing. Making it
    opens nothing.
    """

    def __init__(
        self,
        open_it: Callable[[], BaseRetriever],
        variable: str,
        target: str,
        top_k: int,
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.target = target
        self.similarity_top_k = top_k
        self._open = open_it
        self._variable = variable
        self._seconds = seconds
        self._tell = tell

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        kind = self.target
        try:
            asked = self._open()
            kind = type(asked).__name__
            found = within(self._seconds, lambda: asked.retrieve(query_bundle))
            if not all(isinstance(one, NodeWithScore) for one in found):
                raise TypeError("expected a list of NodeWithScore")
        except CragError as error:
            self._tell(str(error))
            raise
        except Exception as error:
            failed = StoreUnavailable(
                f"The retriever {kind} of {self._variable} ({self.target}) failed: {describe(error)}.",
                hint="Look whether its server runs and can be reached from this machine, then ask again.",
            )
            self._tell(str(failed))
            raise failed from None  # its own words may quote a password
        self._tell("")
        return found


def kind_of(retriever: BaseRetriever) -> str:
    """Its class; of one that a setting names, that name."""
    return retriever.target if isinstance(retriever, OwnRetriever) else type(retriever).__name__


def within(seconds: float, work: Callable[[], Value]) -> Value:
    """What `work` returns or raises, in a thread of its own; `TimeoutError` after `seconds`, and it is left alone."""
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    try:
        return future.result(timeout=seconds)
    except TimeoutError:
        if future.done():  # it ended just now, or raised a TimeoutError of its own
            return future.result()
        raise TimeoutError(f"no reply within {seconds:g} s") from None


def describe(error: Exception) -> str:
    """Its type and the first line of what it says, without what may be a password.

    A URL that cannot be read is quoted in pieces by such errors, so of those the type alone.
    """
    kind = type(error).__name__
    if isinstance(error, ValueError) or kind == "ArgumentError":
        return f"{kind} (what it says is not shown, since it may quote a password)"
    said = (str(error).strip().splitlines() or [""])[0]
    hidden = _MAY_BE_SECRET.sub(lambda found: f"{found[1] or ''}…" + ("" if found[1] else "@"), said)
    return f"{kind}: {hidden[:_LONGEST].rstrip('.')}" if said else kind
