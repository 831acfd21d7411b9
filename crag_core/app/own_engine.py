"""Engines of the user's own by the name of a function: a LlamaIndex retriever or vector store, in place of ours."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from crag_core.base.errors import BadRecord, CragError, StoreUnavailable, WrongUse
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.protocols import Embedder
from crag_core.retrieval.index.store import PassageStore

if TYPE_CHECKING:
    from crag_core.llamaindex.own_retriever import OwnRetriever

RETRIEVER, VECTOR_STORE = "CRAG_RETRIEVER", "CRAG_VECTOR_STORE"
Value = TypeVar("Value")
_TO_BUILD = 10
"""So many times longer than for a reply the function may take, which may load a model."""
_SECRET = re.compile(r"((?:password|passwd|pwd|secret|token|api_?key)['\"]?\s*[=:]\s*)\S+", re.IGNORECASE)
_USER = re.compile(r"""(\buser(?:name)?\s*[=:]?\s*)["'][^"']+["']""", re.IGNORECASE)
_LONGEST = 300  # characters of an error
_LATELY = 60.0  # seconds


class OwnEngine:
    """The retriever or vector store that `target`, "package.module:function", returns; it is called once, at the first
    use. `variable` names it, RETRIEVER or VECTOR_STORE.

    `problem` says what was wrong at the last use, "": nothing, None: not used yet.
    """

    def __init__(self, variable: str, target: str, seconds: float) -> None:
        self.target = target
        self.where = f"{variable} ({target})"
        self._role = "retriever" if variable == RETRIEVER else "vector store"
        self.problem: str | None = None
        self._failed_at = 0.0
        self._seconds = seconds
        self._made: Any = None
        self._lock = Lock()

    @property
    def kind(self) -> str:
        """Its class; "" before the first use."""
        return type(self._made).__name__ if self._made is not None else ""

    def retriever(self, top_k: int) -> OwnRetriever:
        """It for one choice; it is opened when it is asked."""
        import_llama_index()
        from crag_core.llamaindex.own_retriever import OwnRetriever

        return OwnRetriever(self.target, top_k, self.ask)

    def ask(self, work: Callable[[Any], Value]) -> Value:
        """What `work` returns of it within the time; raises `StoreUnavailable` for whatever it raises."""
        asked = self.open()
        try:
            found = within(self._seconds, lambda: work(asked))
        except Exception as error:
            failed = StoreUnavailable(
                f"The {self._role} {self.kind} of {self.where} failed: {describe(error)}.",
                hint="Look whether its server runs and can be reached from this machine, then ask again.",
            )
            self.problem, self._failed_at = str(failed), time.monotonic()
            raise failed from None  # its own words may quote a password
        self.problem = ""
        return found

    def open(self) -> Any:
        """Raises `BadRecord` for a name that leads to none, `StoreUnavailable` where the function failed."""
        with self._lock:
            if self._made is None:
                try:
                    self._made = self._make()
                except CragError as error:
                    self.problem = str(error)
                    raise
                self.problem = None
            return self._made

    def check(self) -> None:
        """Raises what was wrong with it lately: it is not asked, so that an older fault may be over."""
        self.open()
        if self.problem and time.monotonic() - self._failed_at < _LATELY:
            raise StoreUnavailable(self.problem)

    def _make(self) -> Any:
        import_llama_index()
        from crag_core.llamaindex.own_retriever import KINDS

        module, _, name = self.target.partition(":")
        hint = 'To see all of it: python -c "from {} import {}{}"'
        try:
            function = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise BadRecord(
                f"{self.where}: no module {error.name!r} can be imported.",
                hint="Install it, or name its folder in PYTHONPATH.",
            ) from None
        except Exception as error:
            message = f"{self.where}: cannot be imported: {describe(error)}."
            raise BadRecord(message, hint=hint.format(module, name, "")) from None
        if not callable(function):
            raise BadRecord(f"{self.where}: expected a function, found {type(function).__name__}.")
        try:
            made = within(self._seconds * _TO_BUILD, function)
        except Exception as error:
            message = f"{self.where}: the function failed: {describe(error)}."
            raise StoreUnavailable(message, hint=hint.format(module, name, f"; {name}()")) from None
        expected, example = KINDS[self._role]
        if not isinstance(made, expected):
            raise BadRecord(
                f"{self.where}: expected a LlamaIndex {expected.__name__}, found {type(made).__name__}.",
                hint=f"Return one, for instance {example}.",
            )
        if not getattr(made, "stores_text", True):
            raise BadRecord(
                f"{self.where}: expected a vector store that keeps texts, found {type(made).__name__}, which keeps "
                "vectors alone.",
                hint="Return one whose `stores_text` is true.",
            )
        return made


def in_thread(work: Callable[[], Value]) -> Future[Value]:
    """What `work` returns or raises, in a thread of its own, which the end of the program does not wait for."""
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return future


def within(seconds: float, work: Callable[[], Value]) -> Value:
    """As `in_thread`; raises `TimeoutError` after `seconds`, and it is left alone."""
    future = in_thread(work)
    try:
        return future.result(timeout=seconds)
    except TimeoutError:
        if future.done():  # it ended just now, or raised a TimeoutError of its own
            return future.result()
        raise TimeoutError(f"no reply within {seconds:g} s") from None


def describe(error: Exception) -> str:
    """Its type and the first line of what it says, without what may be a password or the name of a user.

    A URL that cannot be read is quoted in pieces by such errors, so of those the type alone.
    """
    kind = type(error).__name__
    if isinstance(error, ValueError) or kind == "ArgumentError":
        return f"{kind} (what it says is not shown, since it may quote a password)"
    said = (str(error).strip().splitlines() or [""])[0]
    hidden = re.sub(r"\S*@", "…@", _USER.sub(r"\1…", _SECRET.sub(r"\1…", said)))
    return f"{kind}: {hidden[:_LONGEST].rstrip('.')}" if said else kind


class EngineStore(PassageStore):
    """Our store where an engine of the user's own is searched: it holds nothing and takes nothing in."""

    def __init__(self, home: Path, embedder: Embedder, engine: OwnEngine) -> None:
        super().__init__(home / "no-index", embedder)
        self._engine = engine

    def fingerprint(self, collection: str = "") -> str:
        """Of the setting: what the engine holds, and whether that changed, is not known."""
        return hashlib.sha256(self._engine.where.encode()).hexdigest()[:16]

    def ingest(self, *given: object, **more: object) -> NoReturn:
        raise WrongUse(
            f"The index of {self._engine.where} is read only: documents are neither added nor indexed again here.",
            hint=f"Change it in your own engine, or unset {RETRIEVER} to use the index in CRAG_HOME.",
        )

    rebuild = ingest
