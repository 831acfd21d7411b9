"""Tavily's search API: needs a key, which is never shown, logged or recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from crag_core.base.errors import BadRecord
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.web import WebOutcome
from crag_core.websearch.http import Answer, Call, NoAnswer, find_results, read_address
from crag_core.websearch.results import SLOW_DOWN, failed, passages_of, read_hits, reply_of, well_formed

_MOST = 20  # results that Tavily gives at once
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what may follow "Bearer" (RFC 6750)


class Tavily:
    """`timeout` in seconds for a search. Raises `BadRecord` for a text that can be no key, without repeating it."""

    name = "Tavily"
    needs = "TAVILY_API_KEY"

    def __init__(self, key: str, timeout: float = 8.0, url: str = "https://api.tavily.com/search") -> None:
        self._key = key
        if not _TOKEN.fullmatch(self._key):
            raise BadRecord(
                "TAVILY_API_KEY: expected a key such as tvly-…, found nothing, or signs that are in no key.",
                hint="Copy it again from app.tavily.com.",
            )
        self._url, _ = read_address(self.name, url)
        self._timeout = timeout

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Self:
        return cls(settings["TAVILY_API_KEY"], settings["CRAG_WEB_TIMEOUT"])

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        body = {"query": well_formed(query), "max_results": min(limit, _MOST)}
        call = Call(self._url, body=body, key=self._key)
        try:
            results = find_results(call, self._timeout, cancel, _refusal, "not its JSON; try again later")
        except NoAnswer as error:
            return failed(self.name, error.outcome, error.why)
        return reply_of(self.name, query, passages_of(read_hits(results)), limit)


def _refusal(answer: Answer) -> NoAnswer:
    if answer.status in (401, 403):
        why = f"gave nothing, since the key was refused ({answer.describe}); put a valid key into TAVILY_API_KEY"
        return NoAnswer(WebOutcome.FAILED, why)
    if answer.status == 429:
        return NoAnswer(WebOutcome.RATE_LIMITED, SLOW_DOWN)
    if answer.status in (432, 433):
        why = f"gave nothing, since the limit of the plan is used up ({answer.describe}); see app.tavily.com"
        return NoAnswer(WebOutcome.FAILED, why)
    return NoAnswer(WebOutcome.FAILED, f"could not be asked ({answer.describe})")
