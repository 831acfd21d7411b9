"""An engine of the user's own in place of our index: a function that returns a LlamaIndex retriever, by its name."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

from crag_core.base.documents import Ingested, OnProgress, Rebuilt, Recipe
from crag_core.base.errors import BadRecord, CragError, StoreUnavailable, WrongUse
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.protocols import Cancel, Embedder
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.upload import Given

if TYPE_CHECKING:
    from llama_index.core.base.base_retriever import BaseRetriever

    from crag_core.llamaindex.own_retriever import OwnRetriever

RETRIEVER = "CRAG_RETRIEVER"
_TO_BUILD = 10
"""So many times longer than for a reply the function may take, which may load a model."""


class OwnEngine:
    """The retriever that `target`, "package.module:function", returns; it is called once, at the first use.

    `problem` says what was wrong at the last use, "": nothing, None: not used yet.
    """

    def __init__(self, target: str, seconds: float) -> None:
        self.target = target
        self.where = f"{RETRIEVER} ({target})"
        self.problem: str | None = None
        self._seconds = seconds
        self._made: BaseRetriever | None = None
        self._lock = Lock()

    @property
    def kind(self) -> str:
        """The class of the retriever; "" before the first use."""
        return type(self._made).__name__ if self._made else ""

    def open(self) -> BaseRetriever:
        """Raises `BadRecord` for a name that leads to no retriever, `StoreUnavailable` where the function failed."""
        with self._lock:
            if self._made is None:
                try:
                    self._made = self._make()
                except CragError as error:
                    self._tell(str(error))
                    raise
                self.problem = None
            return self._made

    def retriever(self, top_k: int) -> OwnRetriever:
        """It for one choice; it is opened when it is asked."""
        import_llama_index()
        from crag_core.llamaindex.own_retriever import OwnRetriever

        return OwnRetriever(self.open, RETRIEVER, self.target, top_k, self._seconds, self._tell)

    def check(self) -> None:
        """Raises what is wrong with it, as far as it is known: nothing is retrieved."""
        self.open()
        if self.problem:
            raise StoreUnavailable(self.problem)

    def _tell(self, problem: str) -> None:
        self.problem = problem

    def _make(self) -> BaseRetriever:
        import_llama_index()
        from llama_index.core.base.base_retriever import BaseRetriever

        made = call(RETRIEVER, self.target, self._seconds * _TO_BUILD)
        if not isinstance(made, BaseRetriever):
            raise BadRecord(
                f"{self.where}: expected a LlamaIndex BaseRetriever, found {type(made).__name__}.",
                hint="Return one, for instance index.as_retriever(similarity_top_k=20).",
            )
        return made


def call(variable: str, target: str, seconds: float) -> Any:
    """What the function of the setting returns. Raises `BadRecord` or `StoreUnavailable`, which name both."""
    from crag_core.llamaindex.own_retriever import describe, within

    module, _, function = target.partition(":")
    hint = f'To see all of it: {Path(sys.executable).name} -c "from {module} import {function}; {function}()"'
    try:
        found = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        where = "Install it, or name its folder in PYTHONPATH."
        raise BadRecord(f"{variable} ({target}): no module {error.name!r} can be imported.", hint=where) from None
    except AttributeError:
        raise BadRecord(f"{variable} ({target}): {module} has no {function!r}.", hint="Correct the name.") from None
    except Exception as error:
        message = f"{variable} ({target}): {module} cannot be imported: {describe(error)}."
        raise BadRecord(message, hint=hint) from None
    if not callable(found):
        raise BadRecord(f"{variable} ({target}): expected a function, found {type(found).__name__}.")
    try:
        return within(seconds, found)
    except CragError:
        raise
    except Exception as error:
        raise StoreUnavailable(f"{variable} ({target}): the function failed: {describe(error)}.", hint=hint) from None


class EngineStore(PassageStore):
    """Our store where an engine of the user's own is searched: it holds nothing and takes nothing in."""

    def __init__(self, home: Path, embedder: Embedder, engine: OwnEngine) -> None:
        super().__init__(home / "no-index", embedder)
        self._engine = engine

    def fingerprint(self, collection: str = "") -> str:
        """Of the setting: what the engine holds, and whether that changed, is not known."""
        return hashlib.sha256(self._engine.where.encode()).hexdigest()[:16]

    def ingest(
        self,
        documents: Iterable[Given],
        on_progress: OnProgress = lambda progress: None,
        *,
        collection: str = "",
        cancel: Cancel | None = None,
    ) -> tuple[Ingested, ...]:
        self.refuse("takes no documents")

    def rebuild(
        self, recipe: Recipe, on_progress: OnProgress = lambda progress: None, cancel: Cancel | None = None
    ) -> Rebuilt:
        self.refuse("is not re-indexed here")

    def refuse(self, what: str) -> NoReturn:
        raise WrongUse(
            f"The index of {self._engine.where} is read only: it {what}.",
            hint=f"Change it in your own engine, or unset {RETRIEVER} to use the index in CRAG_HOME.",
        )
