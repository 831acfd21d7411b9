"""Tavily's search API: needs a key, which is never shown, logged or recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from crag_core.base.errors import BadRecord
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.http import TOLD, JsonSearch, read_address
from crag_core.websearch.results import SLOW_DOWN, well_formed

_MOST = 20  # results that Tavily gives at once
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what may follow "Bearer" (RFC 6750)

_NO_KEY = (
    WebOutcome.FAILED,
    f"gave nothing, since the key was refused ({TOLD}); put a valid key into TAVILY_API_KEY",
)
_USED_UP = (WebOutcome.FAILED, f"gave nothing, since the limit of the plan is used up ({TOLD}); see app.tavily.com")
_REFUSALS = {401: _NO_KEY, 403: _NO_KEY, 429: (WebOutcome.RATE_LIMITED, SLOW_DOWN), 432: _USED_UP, 433: _USED_UP}


class Tavily:
    """`timeout` in seconds for a search. Raises `BadRecord` for a text that can be no key, without repeating it."""

    name = "Tavily"
    needs = "TAVILY_API_KEY"

    def __init__(self, key: str, timeout: float = 8.0, url: str = "https://api.tavily.com/search") -> None:
        if not _TOKEN.fullmatch(key):
            raise BadRecord(
                "TAVILY_API_KEY: expected a key such as tvly-…, found nothing, or signs that are in no key.",
                hint="Copy it again from app.tavily.com.",
            )
        self._url, _ = read_address(self.name, url)
        self._server = JsonSearch(self.name, timeout, _REFUSALS, "not its JSON; try again later", key)

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Self:
        return cls(settings["TAVILY_API_KEY"], settings["CRAG_WEB_TIMEOUT"])

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        body = {"query": well_formed(query), "max_results": min(limit, _MOST)}
        return self._server.search(query, limit, cancel, "POST", self._url, json=body)
