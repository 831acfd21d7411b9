"""A model server as people write it and as it is called: its address, and what is known of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeGuard

from crag_core.base.errors import BadRecord
from crag_core.base.network.addresses import check_url, is_server

DEFAULT_HOST = "http://127.0.0.1:11434"
_EVERY_ADDRESS = ("", "0.0.0.0", "[::]")  # fit to listen on, not to connect to
_HIDDEN = "•••"
_LONGEST_NAME = 500
_SECRETS = re.compile(r"(^|//)[^/?#\s]*@|(?<=[?#])\S+")
_SCHEME = re.compile(r"[a-z]+://", re.IGNORECASE)

_EXAMPLES = {"OLLAMA_HOST": DEFAULT_HOST, "OPENAI_BASE_URL": "http://localhost:8000/v1"}


MOST_MODELS = 500
"""Of one server, in a list that people choose from."""


@dataclass(frozen=True)
class ServerState:
    """Whether a model server answers, and the chat models it has; `message` and `hint` say what is wrong.

    `versions`: (model, what tells its versions apart), of those of which the server says it.
    """

    reachable: bool
    models: tuple[str, ...] = ()
    message: str = ""
    hint: str = ""
    versions: tuple[tuple[str, str], ...] = ()


def is_name(found: object) -> TypeGuard[str]:
    """Whether a server's list may name a model so: what cannot be printed cannot be chosen from a list either."""
    return isinstance(found, str) and 0 < len(found) <= _LONGEST_NAME and found.isprintable()


def too_many(called: str, count: int) -> str:
    """That not all models of a server are offered; "" where they are."""
    return f"{called} lists {count:,} models; the first {MOST_MODELS} are offered." if count > MOST_MODELS else ""


def host_url(value: str) -> str:
    """A usable URL from what people put into OLLAMA_HOST: a bare host, host:port, or the listen address 0.0.0.0."""
    text = value.rstrip("/") or DEFAULT_HOST
    if "://" not in text:
        text = f"http://{text}"
    scheme, _, rest = text.partition("://")
    address, slash, path = rest.partition("/")
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        host, port = address, "11434" if scheme == "http" else "443"
    return f"{scheme}://{'127.0.0.1' if host in _EVERY_ADDRESS else host}:{port}{slash}{path}"


def ollama_url(text: str) -> str:
    """The server of OLLAMA_HOST, the usual one for an empty text; raises `BadRecord`."""
    url = host_url(text)
    _check("OLLAMA_HOST", text, url)
    return url


def check_openai_url(text: str) -> None:
    """Raises `BadRecord` for what can be no server of OPENAI_BASE_URL."""
    if text:
        _check("OPENAI_BASE_URL", text, text)


def shown(url: str) -> str:
    """Scheme, host and port of an address, for people: what stands before the host or after it may be a secret."""
    scheme = _SCHEME.match(url)
    rest = url[scheme.end() :] if scheme else url
    return (scheme[0] if scheme else "") + re.split(r"[/?#]", rest.rpartition("@")[2])[0]


def masked(text: str) -> str:
    """Addresses as a page may show them: dots for a name and password, and for what follows a “?” or “#”."""
    return _SECRETS.sub(lambda found: _HIDDEN if found[1] is None else f"{found[1]}{_HIDDEN}@", text)


def unmasked(typed: str, before: str) -> str:
    """What was typed over `masked(before)`: an address that was left as it was, whole again. Raises `BadRecord`."""
    if typed.strip() == masked(before):
        return before
    if _HIDDEN in typed:
        raise BadRecord(
            f"Expected an address with its name and password, found {_HIDDEN}, which only stands for them.",
            hint="Write them out, or leave the address as it was.",
        )
    return typed


def version_of(model: str, state: ServerState) -> str:
    """What tells the versions of a model apart, "" where its server does not say it.

    A name without a tag means the latest, as it does for Ollama.
    """
    wanted = (model, f"{model}:latest")
    return next((version for name, version in state.versions if name in wanted), "")


def _check(variable: str, given: str, url: str) -> None:
    count = len(re.split(r"[,\s]+", given))
    if count > 1 and re.search("[,:]", given):  # else it is words
        raise BadRecord(
            f"{variable}: expected one address, found {count}.",
            hint="Put LiteLLM or nginx in front of several servers: docs/scaling.md",
        )
    if count > 1 or not is_server(url):
        what = "." if "@" in given else f': "{given[:80]}".'  # it may hold a password
        needed = f"It needs http:// or https:// and a host. Example: {_EXAMPLES[variable]}"
        raise BadRecord(f"{variable}: not an address{what}", hint=needed)
    check_url(variable, url)
