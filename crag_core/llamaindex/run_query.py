"""The query that takes a run from component to component: retriever, postprocessors, synthesizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import NodeWithScore, QueryBundle

from crag_core.base.types.passages import Engine
from crag_core.pipeline.pipeline import OpenRun


class RunQuery(QueryBundle):
    """The question of a run, with what it is to be searched for, and the run itself, which each component carries on.

    `given` holds the nodes of the retriever as they came, those of later rounds too as soon as they are made.
    """

    def __init__(
        self,
        open_run: OpenRun,
        asked: QueryBundle | None = None,
        given: Sequence[NodeWithScore] = (),
        *,
        only_grades: bool = False,
    ) -> None:
        super().__init__(open_run.trace.question, *_searched_with(asked))
        self.open_run = open_run
        self.given = given
        self.only_grades = only_grades

    def __deepcopy__(self, memo: object) -> RunQuery:
        """A run is under way once."""
        return self


class CorpusQuery(QueryBundle):
    """One search of the corpus in a run; `agreement` is told by a retriever that has vectors.

    `asked` is the query that this one searches for with its own texts or vector; None: the text is all.
    """

    def __init__(self, text: str, limit: int, engine: Engine, asked: QueryBundle | None = None) -> None:
        super().__init__(text, *_searched_with(asked))
        self.limit = limit
        self.engine = engine
        self.agreement: float | None = None


def _searched_with(asked: QueryBundle | None) -> tuple[Any, ...]:
    return () if asked is None else (asked.image_path, asked.custom_embedding_strs, asked.embedding)
