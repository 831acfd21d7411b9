"""Other people's text in a report, which must not disguise itself."""

from __future__ import annotations

import base64
import hashlib
import re

from crag_core.base.network.addresses import is_server

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_NO_CHARACTER = re.compile("[\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """The text without control and direction-changing characters; what is no character at all shows as �.

    Half a surrogate pair, as JSON can hold it, would make the whole report unwritable.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _NO_CHARACTER.sub("\ufffd", _CONTROL.sub("", lines))


def web_address(url: str | None) -> str | None:
    """The address, if it is one of the web (http or https, with a host); None for anything else, which stays text."""
    is_plain = url is not None and url == clean(url) and not any(sign.isspace() for sign in url)
    return url if url and is_plain and is_server(url) else None


def allowed(source: str) -> str:
    """A style sheet or a script by its hash, as a content security policy allows it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
