"""The setup that outcomes are kept under."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base import serialization
from crag_core.trace.trace import RunSettings


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
        return serialization.fingerprint((self.settings, self.corpus, self.web))
