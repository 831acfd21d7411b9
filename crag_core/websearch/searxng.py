"""A SearXNG instance through its JSON format: no key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.http import Answer, Call, NoAnswer, find_results, read_address
from crag_core.websearch.results import failed, passages_of, read_hits, reply_of, well_formed

_JSON_ON = "put into its settings.yml: search: {formats: [html, json]}, and restart it"
_LIMITER_OFF = "in its settings.yml, set server: {limiter: false}, or let this machine pass in its limiter.toml"


class SearXNG:
    """`base_url` may hold a path and a name and password; `timeout` in seconds for a search.

    Raises `BadRecord` for what is no such address.
    """

    name = "SearXNG"
    needs = "CRAG_SEARXNG_URL"

    def __init__(self, base_url: str, timeout: float = 8.0) -> None:
        url, self._login = read_address(self.name, base_url)
        self._url = f"{url.removesuffix('/search')}/search"
        self._timeout = timeout

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Self:
        return cls(settings["CRAG_SEARXNG_URL"], settings["CRAG_WEB_TIMEOUT"])

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        call = Call(self._url, params={"q": well_formed(query), "format": "json"}, login=self._login)
        no_json = f"not SearXNG's JSON; check its address, and if that is right: {_JSON_ON}"
        try:
            results = find_results(call, self._timeout, cancel, _refusal, no_json)
        except NoAnswer as error:
            return failed(self.name, error.outcome, error.why)
        return reply_of(self.name, query, passages_of(read_hits(results)), limit)


def _refusal(answer: Answer) -> NoAnswer:
    if answer.status == 401:
        why = "wants a name and a password (HTTP 401); put them into its address: https://name:password@host"
        return NoAnswer(WebOutcome.FAILED, why)
    if answer.status == 403:
        why = f"refused the search (HTTP 403), as it does while its JSON format is off: {_JSON_ON}"
        return NoAnswer(WebOutcome.FAILED, f"{why}. If JSON is on, its limiter may be at work: {_LIMITER_OFF}")
    if answer.status == 429:
        why = f"is limiting the rate of requests; try again later. If it is yours: {_LIMITER_OFF}"
        return NoAnswer(WebOutcome.RATE_LIMITED, why)
    return NoAnswer(WebOutcome.FAILED, f"could not be asked ({answer.describe})")
