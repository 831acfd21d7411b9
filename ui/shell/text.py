"""Escapes untrusted text for the page: never markup, link or script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from crag_core.base.text.display import literal

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_ADDRESS = re.compile(
    r"(?:https?|ftp)://[\w.~:/?#@!&+,;=%-]*[\w/]|www\.[\w.~:/?#@!&+,;=%-]*[\w/]|[\w.+-]+@[\w.-]*\w|:streamlit:",
    re.IGNORECASE | re.ASCII,
)
"""What the browser's renderer would make a link or a picture of; no sign in it ends code, or has a meaning in it."""


def plain(text: str) -> str:
    """Markdown that shows `text` literally, on one line.

    Every ASCII punctuation mark is escaped, which CommonMark renders as itself: no emphasis, link, image, HTML, colour
    or icon survives. Web and mail addresses are linked by the browser's renderer even so, but not as code, of which
    what is copied is the address and nothing else. Control and direction-changing characters are dropped, so that no
    text can disguise itself.
    """
    line = " ".join(literal(text).split())
    parts: list[str] = []
    at = 0
    for found in _ADDRESS.finditer(line):
        if parts and found.start() == at:  # two marks of code side by side would mean something else
            parts[-1] = f"{parts[-1][:-1]}{found[0]}`"
        else:
            parts += [_PUNCTUATION.sub(r"\\\1", line[at : found.start()]), f"`{found[0]}`"]
        at = found.end()
    return "".join((*parts, _PUNCTUATION.sub(r"\\\1", line[at:])))


def paragraphs(text: str) -> str:
    """Like `plain`, keeping line breaks."""
    return "\n\n".join(plain(line) for line in text.splitlines() if line.strip())


def first_lines(lines: Sequence[str], most: int) -> str:
    """Lines of Markdown one below the other, and how many more there are."""
    more = len(lines) - most
    return "  \n".join([*lines[:most], *([f"and {more:,} more"] if more > 0 else [])])


def link(label: str, url: str) -> str:
    """A link to a web address; anything that is not http or https shows as text."""
    if not url.startswith(("http://", "https://")):
        return plain(label)
    return f"[{plain(label)}]({quote(url, safe=':/?#@!$&*+,;=%~-._')})"


def versioned(name: str, version: str) -> str:
    """ "llama3.2 (version a80c4f17acd5)"; the name alone where no version is known."""
    return f"{name} (version {version})" if version else name
