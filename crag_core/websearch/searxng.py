"""A SearXNG instance through its JSON format: no key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.http import JsonSearch, read_address
from crag_core.websearch.results import well_formed

_JSON_ON = "put into its settings.yml: search: {formats: [html, json]}, and restart it"
_LIMITER_OFF = "in its settings.yml, set server: {limiter: false}, or let this machine pass in its limiter.toml"
_REFUSALS = {
    401: (
        WebOutcome.FAILED,
        "wants a name and a password (HTTP 401); put them into its address: https://name:password@host",
    ),
    403: (
        WebOutcome.FAILED,
        f"refused the search (HTTP 403), as it does while its JSON format is off: {_JSON_ON}. If JSON is on, its "
        f"limiter may be at work: {_LIMITER_OFF}",
    ),
    429: (
        WebOutcome.RATE_LIMITED,
        f"is limiting the rate of requests; try again later. If it is yours: {_LIMITER_OFF}",
    ),
}
_NO_JSON = f"not SearXNG's JSON; check its address, and if that is right: {_JSON_ON}"


class SearXNG:
    """`base_url` may hold a path and a name and password; `timeout` in seconds for a search.

    Raises `BadRecord` for what is no such address.
    """

    name = "SearXNG"
    needs = "CRAG_SEARXNG_URL"

    def __init__(self, base_url: str, timeout: float = 8.0) -> None:
        url, self._login = read_address(self.name, base_url)
        self._url = f"{url.removesuffix('/search')}/search"
        self._server = JsonSearch(self.name, timeout, _REFUSALS, _NO_JSON)

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Self:
        return cls(settings["CRAG_SEARXNG_URL"], settings["CRAG_WEB_TIMEOUT"])

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        asked = {"q": well_formed(query), "format": "json"}
        return self._server.search(query, limit, cancel, "GET", self._url, params=asked, auth=self._login)
