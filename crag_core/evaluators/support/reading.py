"""What the models by name that check answers share: tokenizer and weights, labels, and how long a text they read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock

from crag_core.base.errors import UnknownName
from crag_core.evaluators.named.files import ModelFiles, find_files
from crag_core.evaluators.named.names import ModelName, parse_name
from crag_core.evaluators.named.reader import at_work, load_whole, loading, local, read_as_text, read_at_once

LONGEST = 4096
"""Tokens that are read at once at most, where a model reads more."""

_HINT = "Check that its files are whole."


def is_name(setting: str) -> bool:
    """Whether it names a model; which interface it has, its files tell and nobody else."""
    try:
        return not parse_name(setting).told
    except UnknownName:
        return False


def files_of(setting: str) -> ModelFiles:
    """Of a folder as they are now, of the hub as they were at the first use; raises `EvaluatorUnavailable`."""
    name = parse_name(setting)
    return find_files(name) if name.is_folder else _downloaded(name)


@lru_cache(8)
def _downloaded(name: ModelName) -> ModelFiles:
    return find_files(name)


class Reading:
    """A tokenizer, and a model by the class `kind` of transformers; one text is read at a time.

    Constructing it raises `EvaluatorUnavailable`.
    """

    def __init__(self, files: ModelFiles, kind: str) -> None:
        self.files = files
        self._lock = Lock()
        _ = files.tensors  # weights that are not read are told first
        with loading(files, _HINT):
            import transformers

            self.tokenizer = read_as_text(transformers.AutoTokenizer.from_pretrained(files.folder, **local()))
            self.model = load_whole(getattr(transformers, kind), files)
            self.longest = read_at_once(files, self.tokenizer, LONGEST)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """One text at a time; raises `EvaluatorUnavailable`."""
        with self._lock, at_work(self.files, _HINT):
            yield


def finite(chances: list[float]) -> list[float]:
    """The same; raises `ValueError` where a model is broken so that it finds nothing."""
    if not all(map(math.isfinite, chances)):
        raise ValueError("expected probabilities, found none that are numbers")
    return chances


def labels_of(files: ModelFiles) -> dict[int, str]:
    """The names of what a model tells apart, by their place."""
    given = files.config.get("id2label")
    found = given if isinstance(given, dict) else {}
    return {int(place): str(name) for place, name in found.items() if str(place).isdecimal()}
