"""Web search providers by name: each a class with a `name`, what it `needs`, `build(settings)` and `search`.

`search(query, limit, cancel)` tells every outcome and raises nothing but `Stopped`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from crag_core.base.protocols import WebSearcher
from crag_core.websearch.duckduckgo import DuckDuckGo
from crag_core.websearch.searxng import SearXNG
from crag_core.websearch.snapshot import Snapshot
from crag_core.websearch.tavily import Tavily


class ProviderClass(Protocol):
    @property
    def name(self) -> str:
        """As people know it."""

    @property
    def needs(self) -> str:
        """The variable of the setting that it cannot do without; "": it needs none."""

    def build(self, settings: Mapping[str, Any]) -> WebSearcher:
        """From all settings by their variables."""


SNAPSHOT = "snapshot"
"""The provider whose results lead nowhere on the network."""
PROVIDERS: dict[str, ProviderClass] = {
    "duckduckgo": DuckDuckGo,
    "searxng": SearXNG,
    "tavily": Tavily,
    SNAPSHOT: Snapshot,
}
"""By the name that CRAG_WEB_PROVIDERS calls them."""
