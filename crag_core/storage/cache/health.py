"""What is wrong with a cache, in words for people."""

from __future__ import annotations

import logging
from threading import Lock

_log = logging.getLogger("crag.cache")


class Health:
    """Remembers the newest problem of each kind and logs every change of it once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._problems: dict[str, str] = {}
        self._lock = Lock()

    @property
    def problem(self) -> str:
        """All that is wrong now; "" when nothing is."""
        with self._lock:
            return " ".join(dict.fromkeys(self._problems.values()))

    def report(self, kind: str, problem: str) -> None:
        """`problem` "" tells that things of this kind work."""
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
            _log.info("The grade cache %s works again (%s).", self._name, kind)
