"""Web search providers by name, each a class.

`name` is how people know it, `needs` the variable of the setting that it cannot do without ("": none), and
`build(settings)` makes one from all settings by their variables. `search(query, limit, cancel)` tells every outcome and
raises nothing but `Stopped`.
"""

from __future__ import annotations

from crag_core.websearch.duckduckgo import DuckDuckGo
from crag_core.websearch.searxng import SearXNG
from crag_core.websearch.snapshot import Snapshot
from crag_core.websearch.tavily import Tavily

SNAPSHOT = "snapshot"
"""The provider whose results lead nowhere on the network."""
PROVIDERS: dict[str, type[DuckDuckGo | SearXNG | Tavily | Snapshot]] = {
    "duckduckgo": DuckDuckGo,
    "searxng": SearXNG,
    "tavily": Tavily,
    SNAPSHOT: Snapshot,
}
"""By the name that CRAG_WEB_PROVIDERS calls them."""
