"""Web search providers: a class with `search(query, limit, cancel)` that tells every outcome and never raises."""

from crag_core.base.protocols import WebSearcher
from crag_core.websearch.duckduckgo import DuckDuckGo
from crag_core.websearch.searxng import SearXNG
from crag_core.websearch.snapshot import Snapshot
from crag_core.websearch.tavily import Tavily

__all__ = ["PROVIDERS", "DuckDuckGo", "SearXNG", "Snapshot", "Tavily"]

PROVIDERS: dict[str, type[WebSearcher]] = {
    "duckduckgo": DuckDuckGo,
    "searxng": SearXNG,
    "tavily": Tavily,
    "snapshot": Snapshot,
}
