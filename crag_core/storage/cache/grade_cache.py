"""What all grade caches share: grades as JSON, errors in plain words, a pause after a server did not answer."""

from __future__ import annotations

import json
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from crag_core.base.errors import BadRecord
from crag_core.base.protocols import Clock
from crag_core.base.serialization import from_plain, to_plain
from crag_core.base.types.grades import Grade
from crag_core.trace.trace import in_present_words

Found = TypeVar("Found")

_log = logging.getLogger("crag.cache")

AWAY_S = 30.0
"""So long a server that did not answer is left alone, so that it does not cost each run a wait."""
_AWAY = f"Check that the server runs and lets you in; it is tried again every {AWAY_S:.0f} s."


@dataclass(frozen=True)
class Fault:
    """The error of the store, without a password, and what to do; `is_away`: it did not answer."""

    detail: str
    hint: str = ""
    is_away: bool = False


class GradeCache(ABC):
    """Constructing one touches neither disk nor network.

    `name` is "disk", or the URL without user, password and options. `problem` says what is wrong, "" when nothing is.
    """

    def __init__(self, name: str, place: str, clock: Clock) -> None:
        self.name = name
        self._place = place
        self._clock = clock
        self._away_until = -math.inf
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
        values = {key: json.dumps(to_plain(grade)).encode("ascii") for key, grade in grades.items()}
        if values:
            self._attempt("written", lambda: self._write(values))

    def close(self) -> None:  # noqa: B027  # most keep nothing open between two calls
        """Let go of what is open."""

    @abstractmethod
    def _read(self, keys: Sequence[str]) -> Mapping[str, object]:
        """What is kept and has not expired."""

    @abstractmethod
    def _write(self, values: Mapping[str, bytes]) -> None: ...

    @abstractmethod
    def _fault(self, error: Exception) -> Fault | None:
        """None for an error that is not the store's."""

    def _attempt(self, purpose: str, work: Callable[[], Found]) -> Found | None:
        """What `work` gives, or None and a problem."""
        if self._is_away():
            return None
        try:
            done = work()
        except Exception as error:
            fault = self._fault(error)
            if fault is None:
                raise
            if fault.is_away:
                self._away_until = self._clock() + AWAY_S
                self._report("reached", self._explain("reached", fault.detail, _AWAY))
            else:  # it answers, and says no: asking it costs no waiting
                self._back()
                self._report(purpose, self._explain(purpose, fault.detail, fault.hint))
            return None
        self._back()
        self._report(purpose, "")
        return done

    def _is_away(self) -> bool:
        """False for one thread after a while, which then asks; the others go on without waiting."""
        with self._lock:
            now = self._clock()
            if now < self._away_until:
                return True
            if math.isfinite(self._away_until):
                self._away_until = now + AWAY_S
            return False

    def _back(self) -> None:
        self._away_until = -math.inf
        self._report("reached", "")

    def _explain(self, purpose: str, detail: str, hint: str) -> str:
        return f"The grade cache {self._place} cannot be {purpose} ({detail[:200]}), so chunks are graded again. {hint}"

    def _report(self, kind: str, problem: str) -> None:
        """The newest problem of each kind counts, and every change is logged once; "": things of this kind work."""
        with self._lock:
            if self._problems.get(kind, "") == problem:
                return
            if problem:
                self._problems[kind] = problem
            else:
                del self._problems[kind]
        if problem:
            _log.warning("%s", problem)
        else:
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
