"""A SearXNG instance through its JSON format: no key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.passages import Passage
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.http import Answer, Call, Deadline, NoAnswer, find_results, read_address
from crag_core.websearch.results import Hit, failed, passages_of, read_hits, reply_of, well_formed

_PAGES = 3
_SILENT_SHOWN = 5  # engines named when nothing was found
_JSON_ON = "put into its settings.yml: search: {formats: [html, json]}, and restart it"
_LIMITER_OFF = "in its settings.yml, set server: {limiter: false}, or let this machine pass in its limiter.toml"


class SearXNG:
    """`base_url` may hold a path and a name and password; `timeout` in seconds is for all pages of a search together.

    Raises `BadRecord` for what is no such address.
    """

    name = "SearXNG"
    needs = "CRAG_SEARXNG_URL"

    def __init__(self, base_url: str, timeout: float = 8.0) -> None:
        url, self._login = read_address(self.name, base_url)
        self._url = f"{url.removesuffix('/search')}/search"
        self._timeout = timeout

    @classmethod
    def build(cls, settings: Mapping[str, Any], is_last: bool) -> Self:
        return cls(settings["CRAG_SEARXNG_URL"], settings["CRAG_WEB_TIMEOUT"])

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        deadline = Deadline(self._timeout)
        hits: list[Hit] = []
        passages: tuple[Passage, ...] = ()
        silent = ""
        for page in range(1, _PAGES + 1):
            try:
                data = self._page(query, page, deadline, cancel)
            except NoAnswer as error:
                if passages:  # what the pages before brought is worth more than nothing
                    break
                return failed(self.name, error.outcome, error.why)
            hits += read_hits(data["results"])
            silent = silent or _silent(data)
            known, passages = len(passages), passages_of(hits)
            if len(passages) >= limit or len(passages) == known:
                break
        if not passages and silent:
            return failed(self.name, WebOutcome.EMPTY, f"found nothing for “{query}”; no answer came from {silent}")
        return reply_of(self.name, query, passages, limit)

    def _page(self, query: str, page: int, deadline: Deadline, cancel: Cancel) -> dict[str, Any]:
        params: dict[str, str | int] = {"q": well_formed(query), "format": "json", "pageno": page}
        call = Call(self._url, params=params, login=self._login)
        no_json = f"not SearXNG's JSON; check its address, and if that is right: {_JSON_ON}"
        return find_results(call, deadline, cancel, _refusal, no_json)


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


def _silent(data: dict[str, Any]) -> str:
    """The engines that the instance asked in vain, each with the reason: "google (timeout), brave (CAPTCHA)"."""
    engines = data.get("unresponsive_engines")
    pairs = [pair for pair in engines if isinstance(pair, list) and pair] if isinstance(engines, list) else []
    message = [" ".join(f"{pair[0]} ({', '.join(map(str, pair[1:]))})".split())[:80] for pair in pairs[:_SILENT_SHOWN]]
    more = len(pairs) - len(message)
    return ", ".join([*message, *([f"{more} more"] if more else [])])
