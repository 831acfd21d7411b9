"""The setup of a comparison: everything besides the question that an answer depends on."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base import serialization
from crag_core.trace.trace import RunSettings, as_compared


@dataclass(frozen=True)
class Setup:
    """`corpus` is the fingerprint of the index. `web`: "" for no search, the fingerprint of an offline web,
    or the names of the providers, whose answers may be others tomorrow. `name` and `created` are for people."""

    settings: RunSettings
    corpus: str
    web: str = ""
    name: str = ""
    created: str = ""

    @property
    def fingerprint(self) -> str:
        return serialization.fingerprint((as_compared(self.settings), self.corpus, self.web))


@dataclass(frozen=True)
class KeptSetup:
    """A setup that outcomes are kept under, with the `keys` of their questions.

    `fingerprint` is the one of then: a version that knows other settings gives the same `setup` another one.
    """

    setup: Setup
    fingerprint: str
    keys: frozenset[str]

    @property
    def id(self) -> str:
        """Short, for people to name it by."""
        return self.fingerprint[:8]
