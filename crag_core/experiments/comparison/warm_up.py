"""Loads models before anything is measured."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable

from crag_core.base.errors import CragError
from crag_core.base.protocols import Cancel
from crag_core.pipeline.pipeline import Pipeline
from crag_core.trace.same_evaluator import made_by

QUESTION = "Is everything in its place?"


class WarmUp:
    """Remembers what is warm; one for all who measure in a process. Who comes while another warms up waits for him."""

    def __init__(self) -> None:
        self._warm: set[Hashable] = set()
        self._lock = threading.Lock()

    def __call__(self, pipelines: Iterable[Pipeline], cancel: Cancel) -> None:
        """Let each part that is cold do a little work; neither a language model nor the web is asked.

        Never raises a `CragError`: the run that meets a fault tells it.
        """
        with self._lock:
            for pipeline in pipelines:
                made = pipeline.settings
                parts = (made.embedding, made_by(made.evaluator), made_by(made.strip_evaluator))
                if parts in self._warm or cancel.is_set():
                    continue
                try:
                    is_warm = _use(pipeline, cancel)
                except CragError:
                    continue
                if is_warm:
                    self._warm.add(parts)


def _use(pipeline: Pipeline, cancel: Cancel) -> bool:
    """False where nothing is indexed that could be graded."""
    parts = pipeline.parts
    passages = parts.retriever.retrieve(QUESTION, 1).passages if parts.retriever else ()
    if passages and not parts.evaluator.card.calls_model:
        parts.evaluator.grade(QUESTION, passages, cancel)
    if passages:
        parts.strip_evaluator.grade(QUESTION, passages, cancel)
    return bool(passages)
