"""The address of a web search server, with its credentials hidden."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from crag_core.base.errors import BadRecord
from crag_core.base.network.addresses import check_url

_NOT_IN_AN_ADDRESS = re.compile(r"[\s\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Address:
    """`url` without a trailing slash and without the name and password, which `login` holds if there are any."""

    url: str
    login: tuple[str, str] | None = field(default=None, repr=False)


def read_address(provider: str, text: str) -> Address:
    """Raises `BadRecord` for anything but http:// or https:// with a host, a port and a path as they please."""
    text = text.strip()
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")  # what the name look-up does later, and fails at without a word of what is wrong
    except ValueError:  # its words may hold a part of the password
        raise _bad(provider, text) from None
    usable = parts.scheme in ("http", "https") and host and port != 0 and not _NOT_IN_AN_ADDRESS.search(text)
    if not usable or "?" in text or "#" in text:
        raise _bad(provider, text)
    check_url(provider, text)
    before, _, place = parts.netloc.rpartition("@")
    login = (unquote(parts.username or ""), unquote(parts.password or "")) if before else None
    return Address(_known_to_httpx(provider, f"{parts.scheme}://{place}{parts.path.rstrip('/')}"), login)


def _known_to_httpx(provider: str, url: str) -> str:
    import httpx

    try:
        httpx.URL(url)
    except httpx.InvalidURL:
        raise _bad(provider, url) from None
    return url


def _bad(provider: str, text: str) -> BadRecord:
    shown = text.rpartition("@")[2]  # what stands before it may be a password
    return BadRecord(
        f"{provider}: expected an address such as http://localhost:8080, found {shown[:80]!r}.",
        hint="It needs http:// or https:// and a host, and may have a port and a path, but no “?” or “#”.",
    )
