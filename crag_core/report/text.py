"""What a page of its own may lead to and run: addresses of the web, its own style sheet and script."""

from __future__ import annotations

import base64
import hashlib

from crag_core.base.network.addresses import is_server
from crag_core.base.text.display import literal


def web_address(url: str | None) -> str | None:
    """The address, if it is one of the web (http or https, with a host); None for anything else, which stays text."""
    is_plain = url is not None and url == literal(url) and not any(sign.isspace() for sign in url)
    return url if url and is_plain and is_server(url) else None


def allowed(source: str) -> str:
    """A style sheet or a script by its hash, as a content security policy allows it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
