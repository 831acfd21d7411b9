"""Normalises the results of any provider: addresses checked, duplicates removed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from crag_core.base.network.addresses import is_server
from crag_core.base.protocols import WebReply
from crag_core.base.types.passages import Origin, Passage
from crag_core.base.types.web import WebOutcome

SLOW_DOWN = "is limiting the rate of requests; try again in a minute"
PROVIDER = "provider"
"""The name of the score that a web result brings with it."""
_HIGHEST_SCORE = 1e6


@dataclass(frozen=True)
class Hit:
    """One result as a provider tells it; `text` is its snippet, `score` the provider's own relevance of it."""

    url: str
    title: str
    text: str
    score: float | None = None


def read_hits(results: list[Any]) -> list[Hit]:
    """Hits from JSON objects with `url`, `title`, `content` and `score`; what is missing or no text counts as empty."""
    return [
        Hit(_text(result, "url"), _text(result, "title"), _text(result, "content"), _score(result))
        for result in results
        if isinstance(result, dict)
    ]


def reply_of(provider: str, query: str, hits: Iterable[Hit], limit: int) -> WebReply:
    """The first `limit` hits that lead to the web and say something, each address once, or that nothing was found."""
    kept: dict[str, Passage] = {}
    for hit in hits:
        if is_server(hit.url) and (hit.text.strip() or hit.title.strip()):
            kept.setdefault(hit.url, _passage(hit))
    if not kept:
        return failed(provider, WebOutcome.EMPTY, f"found nothing for “{query}”")
    return WebReply(WebOutcome.USED, provider, tuple(kept.values())[:limit])


def failed(provider: str, outcome: WebOutcome, why: str) -> WebReply:
    """A reply without results; `why` goes on where the provider's name begins a sentence."""
    return WebReply(outcome, provider, message=f"{provider} {why}.")


def well_formed(text: str) -> str:
    """The text without half characters (lone surrogates), which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def on_one_line(text: object) -> str:
    """A foreign text for a message, at most 160 characters."""
    return " ".join(str(text).split())[:160]


def _text(result: dict[str, Any], key: str) -> str:
    value = result.get(key)
    return value if isinstance(value, str) else ""


def _score(result: dict[str, Any]) -> float | None:
    """On the provider's own scale; None for what is no number, and for one that no scale reaches."""
    value = result.get("score")
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= _HIGHEST_SCORE:
        return None
    return float(value)


def _passage(hit: Hit) -> Passage:
    digest = hashlib.sha256(hit.url.encode("utf-8", "replace")).hexdigest()[:12]
    return Passage(
        id=f"web-{digest}",
        text=hit.text.strip() or hit.title.strip(),
        source=hit.title.strip() or urlsplit(hit.url).netloc,
        origin=Origin.WEB,
        document_id=f"web-{digest}",
        url=hit.url,
        found_by=("web",),
        scores=() if hit.score is None else ((PROVIDER, hit.score),),
    )
