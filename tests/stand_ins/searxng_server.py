"""A server that answers as a SearXNG instance does when it is asked for JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from .duckduckgo_server import WebResult
from .json_server import Heard, JsonServer, Said

TOO_MANY = Said(b"Too Many Requests", 429, "text/html; charset=utf-8")  # the words of its limiter
FORBIDDEN = Said(
    b"<!doctype html>\n<html lang=en>\n<title>403 Forbidden</title>\n<h1>Forbidden</h1>\n"
    b"<p>You don&#39;t have the permission to access the requested resource. It is either read-protected or not "
    b"readable by the server.</p>\n",
    403,
    "text/html; charset=utf-8",
)
SEARCH_ERROR = Said({"error": "search error"}, 500)


class SearXNGServer(JsonServer):
    """Serves the first ten of its `results`.

    login         name and password that a proxy before it asks for
    prefix        the path below which it lives
    """

    def __init__(self, results: Sequence[WebResult] = (), *, prefix: str = "") -> None:
        super().__init__("GET", f"{prefix}/search")
        self.results = list(results)
        self.login: tuple[str, str] | None = None

    def answer(self, heard: Heard) -> Said:
        if self.login and heard.headers.get("authorization") != _basic(*self.login):
            return Said(b"Unauthorized", 401, "text/plain", {"www-authenticate": 'Basic realm="search"'})
        if heard.params.get("format") != "json":
            return FORBIDDEN
        if not heard.params.get("q"):
            return Said({"error": "No query"}, 400)
        found = self.results[:10]
        return Said(
            {
                "query": heard.params["q"],
                "number_of_results": 0,
                "results": [result_object(result, place) for place, result in enumerate(found, start=1)],
                "answers": [],
                "corrections": [],
                "infoboxes": [],
                "suggestions": ["alan turing film"],
            }
        )


def result_object(result: WebResult, place: int) -> dict[str, Any]:
    """A result with the fields of the real thing."""
    parts = urlsplit(result.url) if "[" not in result.url else urlsplit("")
    return {
        "url": result.url,
        "title": result.title,
        "content": result.body,
        "publishedDate": None,
        "thumbnail": "",
        "engine": "brave",
        "template": "default.html",
        "parsed_url": [parts.scheme, parts.netloc, parts.path, "", parts.query, parts.fragment],
        "img_src": "",
        "priority": "",
        "engines": ["brave", "mojeek"],
        "positions": [place],
        "score": 1.0 / place,
        "category": "general",
    }


def _basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()
