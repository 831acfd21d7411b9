"""A server that answers as DuckDuckGo's HTML page does, and the seam through which `ddgs` comes to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import escape
from typing import Protocol, Self

from starlette.responses import HTMLResponse
from starlette.types import ASGIApp

from .local_server import LocalServer

BROKEN_PAGE = "<html><body><div class='links_main result__body'><h2><a href='http"
NOTHING_FOUND = "<div class='no-results'>No results found for this search.</div>"


@dataclass(frozen=True)
class WebResult:
    """One hit as a test wants it found."""

    title: str
    url: str
    body: str


class DuckDuckGoServer(LocalServer):
    """While entered, `ddgs.DDGS().text(..., backend="duckduckgo")` asks this server and nobody else.

    results   what is found, or a function of the query
    status    200, or what a refusal looks like: 202 (DuckDuckGo's rate limit), 403, 429, 500
    delay_s   wait before the first byte
    page      this text instead of a page made from `results` (`BROKEN_PAGE`, "")
    `stop()` makes the connection refused, `start()` mends it; `queries` are the queries received.
    """

    def __init__(self, results: Sequence[WebResult] | Callable[[str], Sequence[WebResult]] = ()) -> None:
        super().__init__({("POST", "/html/"): self._search})
        self.results = results
        self.status = 200
        self.delay_s = 0.0
        self.page: str | None = None
        self._seam = ExitStack()

    @property
    def queries(self) -> list[str]:
        return [form["q"] for _, form in self.requests]

    def __enter__(self) -> Self:
        super().__enter__()
        self._seam.enter_context(search_url_at(self))
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._seam.close()
        super().__exit__(*exc_info)

    async def _search(self, form: dict[str, str]) -> ASGIApp:
        await asyncio.sleep(self.delay_s)
        results = self.results(form["q"]) if callable(self.results) else self.results
        return HTMLResponse(result_page(results) if self.page is None else self.page, self.status)


class Served(Protocol):
    @property
    def url(self) -> str: ...


@contextmanager
def search_url_at(server: Served) -> Iterator[None]:
    """Point the engine class of `ddgs` at a server, and back; engines that exist already follow, they read it there."""
    from ddgs.engines.duckduckgo import Duckduckgo

    original = Duckduckgo.search_url
    Duckduckgo.search_url = f"{server.url}/html/"
    try:
        yield
    finally:
        Duckduckgo.search_url = original


def result_page(results: Sequence[WebResult]) -> str:
    """A page in which the paths that `ddgs` looks for lead to these results."""
    hits = "\n".join(
        f"""<div class="result results_links"><div class="links_main links_deep result__body">
        <h2 class="result__title"><a class="result__a" href="{escape(result.url)}">{escape(result.title)}</a></h2>
        <a class="result__snippet" href="{escape(result.url)}">{escape(result.body)}</a></div></div>"""
        for result in results
    )
    return f"<!DOCTYPE html><html><head><title>DuckDuckGo</title></head><body>{hits or NOTHING_FOUND}</body></html>"
