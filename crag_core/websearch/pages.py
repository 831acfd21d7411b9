"""Reads the pages that a search found: public addresses only, text only, as robots.txt allows, within time and size."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin

from crag_core.base.concurrency.cancellation import wait_for
from crag_core.base.errors import CragError, Stopped
from crag_core.base.network.addresses import is_server, why_not_public
from crag_core.base.protocols import Cancel, PageText
from crag_core.websearch.results import on_one_line

if TYPE_CHECKING:
    import httpx
    from protego import Protego

Cut = Callable[[bytes, str, Cancel], tuple[tuple[str, str], ...]]
"""(content, name, cancel) to chunks (text, section), the name with the extension of its format.

Raises `DocumentRefused`, and `Stopped` once `cancel` is set.
"""

Value = TypeVar("Value")

LARGEST_PAGE = 2_000_000  # bytes
AGENT = "CRAG-Explorer"
_AT_ONCE = 5  # pages of one call
_REDIRECTS = 3
_MOST_RULES = 500_000  # bytes of a robots.txt; RFC 9309 asks for as many
_TEXT = {"text/html": ".html", "application/xhtml+xml": ".html", "text/plain": ".txt", "text/markdown": ".md"}
_HEADERS = {"Accept": "text/html, application/xhtml+xml, text/plain;q=0.9", "User-Agent": AGENT}
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_MARKED = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")  # byte-order marks, which say more than a header


class NotRead(Exception):
    """A page was not read; the message goes on where its address begins a sentence."""


class WebPages:
    """Reads pages side by side; `seconds` are for all requests of one call, each robots.txt among them.

    `cut` gets what was sent as it came, and makes chunks of it, within limits of its own. `why_refused` says
    why a host is not asked, before each request and of each address that its name leads to.
    """

    def __init__(self, cut: Cut, seconds: float = 8.0, why_refused: Callable[[str], str] = why_not_public) -> None:
        self._cut = cut
        self._seconds = seconds
        self._why_refused = why_refused

    def read(self, urls: Sequence[str], cancel: Cancel) -> tuple[PageText, ...]:
        if cancel.is_set():
            raise Stopped()
        return tuple(wait_for(self._read_all(urls, cancel), cancel))

    async def _read_all(self, urls: Sequence[str], cancel: Cancel) -> list[PageText]:
        import httpx

        from crag_core.base.network.http_guard import page_hooks

        bounds: dict[str, Any] = page_hooks(LARGEST_PAGE, self._seconds, self._why_refused)
        bounds["event_hooks"]["response"].append(_note_redirect)
        try:
            client = httpx.AsyncClient(headers=_HEADERS, timeout=None, **bounds)
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            why = f"was not asked: the proxy set in the environment cannot be used ({on_one_line(error)})"
            return [PageText(why=why) for _ in urls]
        async with client:
            visit = _Visit(client)
            return list(await asyncio.gather(*(self._read_one(visit, url, cancel) for url in urls)))

    async def _read_one(self, visit: _Visit, url: str, cancel: Cancel) -> PageText:
        import httpx

        from crag_core.base.network.http_guard import NotAsked

        start = time.monotonic()
        try:
            async with asyncio.timeout(self._seconds), visit.turns:
                content, extension = await visit.page(url)
            chunks = await asyncio.to_thread(self._cut, content, f"page{extension}", cancel)
            seconds = time.monotonic() - start
            return PageText(chunks, seconds=seconds, characters=sum(len(text) for text, _ in chunks))
        except (NotRead, NotAsked) as error:
            why = str(error)
        except Stopped:
            raise
        except CragError as error:
            why = f"cannot be used ({error.message.partition(': ')[2].rstrip('.') or error.message})"
        except (TimeoutError, httpx.TimeoutException):
            why = f"was not read within {self._seconds:g} s"
        except httpx.ConnectError as error:
            why = f"could not be reached ({on_one_line(error)})"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = f"could not be read ({on_one_line(error)})"
        return PageText(why=why, seconds=time.monotonic() - start)


@dataclass
class _Visit:
    """The requests of one call: each robots.txt once."""

    client: httpx.AsyncClient
    robots: dict[str, Protego] = field(default_factory=dict)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def page(self, url: str) -> tuple[bytes, str]:
        """What a page holds, and the extension of its format; raises `NotRead`, or an error of httpx."""

        async def allowed(place: httpx.URL) -> tuple[bytes, str]:
            if not (await self.rules(place)).can_fetch(str(place), AGENT):
                raise NotRead("asks programs not to read it (robots.txt)")
            return await self._page(place)

        return await _follow(_place(url), allowed)

    async def _page(self, place: httpx.URL) -> tuple[bytes, str]:
        async with self.client.stream("GET", place) as response:
            if response.status_code != 200:
                raise NotRead(f"answered with HTTP {response.status_code}")
            said = response.headers.get("content-type", "")
            kind = said.partition(";")[0].strip().lower()
            if kind not in _TEXT:
                raise NotRead(f"is {on_one_line(kind) or 'of a kind that it does not name'}, and only text is read")
            return _with_charset(await response.aread(), _TEXT[kind], said), _TEXT[kind]

    async def rules(self, place: httpx.URL) -> Protego:
        """The robots.txt of a site, an empty one where it has none; raises `NotRead` where nobody can know."""
        from protego import Protego

        site = f"{place.scheme}://{place.netloc.decode('ascii', 'replace')}"
        async with self.locks.setdefault(site, asyncio.Lock()):
            if site not in self.robots:
                try:
                    self.robots[site] = Protego.parse(await _follow(place.join("/robots.txt"), self._ask_rules))
                except NotRead as error:
                    raise NotRead(f"was not asked, since its site's robots.txt {error}") from None
        return self.robots[site]

    async def _ask_rules(self, place: httpx.URL) -> str:
        response = await self.client.get(place)
        if response.status_code == 200:
            return response.content[:_MOST_RULES].decode("utf-8", "replace")
        if 400 <= response.status_code < 500 and response.status_code != 429:
            return ""
        raise NotRead(f"answered with HTTP {response.status_code}")


class _Redirected(Exception):
    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


async def _note_redirect(response: httpx.Response) -> None:
    # Here and not later: the client reads the target even if it does not follow, and fails at odd ones.
    if response.has_redirect_location:
        raise _Redirected(response.headers["location"])


async def _follow(place: httpx.URL, ask: Callable[[httpx.URL], Awaitable[Value]]) -> Value:
    """What is found at a place, or where it sends requests on to within its site."""
    for _ in range(_REDIRECTS + 1):
        try:
            return await ask(place)
        except _Redirected as found:
            place = _next(place, found.location)
    raise NotRead("sends requests on again and again")


def _place(url: str) -> httpx.URL:
    import httpx

    try:
        place = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise NotRead("is no address that can be asked") from None
    if not is_server(url):
        raise NotRead("is no web address")
    if place.userinfo:
        raise NotRead("was not asked, since its address holds a name or a password")
    return place


def _next(place: httpx.URL, location: str) -> httpx.URL:
    """Where a redirect leads: to another page of the same site, since no other was named to the user."""
    try:
        target = _place(urljoin(str(place), location))
    except (NotRead, ValueError):
        raise NotRead("sends requests on to what is no web address") from None
    is_safe = target.scheme == place.scheme or target.scheme == "https"
    if _site(target) != _site(place) or not is_safe:
        raise NotRead(f"sends requests on to {on_one_line(target.copy_with(query=None))}, which is not followed")
    return target


def _site(place: httpx.URL) -> tuple[str, int | None]:
    return place.host.removeprefix("www."), place.port


def _with_charset(content: bytes, extension: str, said: str) -> bytes:
    """An HTML page that says itself what its header says of its encoding, for the reader."""
    found = _CHARSET.search(said)
    is_marked = content.startswith(_MARKED) or content.lstrip()[:5] == b"<?xml"
    if extension != ".html" or found is None or is_marked or found[1].lower().startswith("utf"):
        return content
    return f'<meta charset="{found[1]}">'.encode() + content
