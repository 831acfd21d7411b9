"""What both grade caches share: grades as JSON, errors in plain words, each change logged once."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TypeVar

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain, to_plain
from crag_core.base.types.grades import Grade
from crag_core.trace.trace import in_present_words

Found = TypeVar("Found")

_log = logging.getLogger("crag.cache")


class GradeCache(ABC):
    """Constructing one touches neither disk nor network.

    `name` is "disk", or the URL without user, password and options. `problem` says what is wrong, "" when nothing is.
    """

    def __init__(self, name: str, place: str) -> None:
        self.name = name
        self._place = place
        self._problems: dict[str, str] = {}
        self._lock = Lock()

    @property
    def problem(self) -> str:
        with self._lock:
            return " ".join(dict.fromkeys(self._problems.values()))

    def get_many(self, keys: Sequence[str]) -> dict[str, Grade]:
        values = self._attempt("read", lambda: self._read(keys)) if keys else None
        grades = {key: _decode(value) for key, value in (values or {}).items()}
        return {key: grade for key, grade in grades.items() if grade is not None}

    def put_many(self, grades: dict[str, Grade]) -> None:
        values = {key: json.dumps(to_plain(grade)) for key, grade in grades.items()}
        if values:
            self._attempt("written", lambda: self._write(values))

    @abstractmethod
    def _read(self, keys: Sequence[str]) -> Mapping[str, object]:
        """What is kept and has not expired."""

    @abstractmethod
    def _write(self, values: Mapping[str, str]) -> None: ...

    @abstractmethod
    def _attempt(self, purpose: str, work: Callable[[], Found]) -> Found | None:
        """What `work` gives, or None and a problem reported; raises errors that are not the store's."""

    def _report(self, kind: str, detail: str = "", hint: str = "") -> None:
        """The newest problem of each kind counts, and every change is logged once; "": things of this kind work."""
        problem = f"The grade cache {self._place} cannot be {kind} ({detail[:200]}), so chunks are graded again. {hint}"
        with self._lock:
            before = self._problems.pop(kind, "")
            if detail:
                self._problems[kind] = problem
        if detail and problem != before:
            _log.warning("%s", problem)
        elif before and not detail:
            _log.info("The grade cache %s works again (%s).", self.name, kind)


def _decode(value: object) -> Grade | None:
    """None for whatever is not a grade with a score: others may write to the file or the server too."""
    if not isinstance(value, bytes | str):
        return None
    try:
        grade = from_plain(Grade, in_present_words(json.loads(value)))
    except (ValueError, RecursionError, BadRecord):  # ValueError: neither JSON nor text
        return None
    return grade if grade.score is not None else None
