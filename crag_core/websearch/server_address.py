"""The address of a web search server, with its credentials hidden."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from crag_core.base.errors import BadRecord
from crag_core.base.network.addresses import check_url, without_login

_NOT_IN_AN_ADDRESS = re.compile(r"[\s\x00-\x1f\x7f?#]")


def read_address(provider: str, text: str) -> tuple[str, tuple[str, str] | None]:
    """(the address without a trailing slash and a login, name and password if there are any).

    Raises `BadRecord` for anything but http:// or https:// with a host, a port and a path as they please.
    """
    import httpx

    text = text.strip()
    try:
        parts = urlsplit(text)
        (parts.hostname or "").encode("idna")  # as the name look-up does, which fails without saying what is wrong
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        url, login = without_login(f"{parts.scheme}{text[len(parts.scheme) :]}")
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):  # the error may quote a part of the password
        raise _bad(provider, text) from None
    if not usable or _NOT_IN_AN_ADDRESS.search(text):
        raise _bad(provider, text)
    check_url(provider, text)
    return url.rstrip("/"), login


def _bad(provider: str, text: str) -> BadRecord:
    shown = text.rpartition("@")[2]  # what stands before it may be a password
    return BadRecord(
        f"{provider}: expected an address such as http://localhost:8080, found {shown[:80]!r}.",
        hint="It needs http:// or https:// and a host, and may have a port and a path, but no “?” or “#”.",
    )
