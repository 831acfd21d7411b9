"""The query that takes a run from component to component: retriever, postprocessors, synthesizer."""

from __future__ import annotations

from llama_index.core.schema import QueryBundle

from crag_core.base.types import Engine
from crag_core.pipeline.pipeline import OpenRun


class RunQuery(QueryBundle):
    """The question of a run, and the run itself, which each component carries on."""

    def __init__(self, under_way: OpenRun, *, only_grades: bool = False) -> None:
        super().__init__(under_way.trace.question)
        self.under_way = under_way
        self.only_grades = only_grades

    def __deepcopy__(self, memo: object) -> RunQuery:
        """A run is under way once."""
        return self


class CorpusQuery(QueryBundle):
    """One search of the corpus in a run; `agreement` is told by a retriever that has vectors."""

    def __init__(self, text: str, limit: int, engine: Engine) -> None:
        super().__init__(text)
        self.limit = limit
        self.engine = engine
        self.agreement: float | None = None
