"""Model servers as people write them and as they are told of: lists of addresses, and what is known of each. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

from crag_core.base.errors import BadRecord
from crag_core.base.network.addresses import check_url

DEFAULT_HOST = "http://127.0.0.1:11434"
_EVERY_ADDRESS = ("", "0.0.0.0", "[::]")  # fit to listen on, not to connect to
_HIDDEN = "•••"
_SECRETS = re.compile(r"(^|//|[\s,])[^/?#\s,]*@|(?<=[?#])[^\s,]+")
_SCHEME = re.compile(r"[a-z]+://", re.IGNORECASE)

_ADDED = {
    "OLLAMA_HOST": re.compile(r"/(?:api|v1)(?:/(?:chat|generate|tags|show|ps|version|models|(?:chat/)?completions))?$"),
    "OPENAI_BASE_URL": re.compile(r"/(?:(?:chat/)?completions|chat|models|responses|embeddings)$"),
}
"""Ends of addresses that people copy from examples, where only what stands before them is asked for."""


@dataclass(frozen=True)
class ServerState:
    """Whether a model server answers, and the chat models it has; `message` and `hint` say what is wrong.

    `servers`: the same of each, in the order of the list, where this tells of several. `versions`: (model, what tells
    its versions apart), of those of which the server says it.
    """

    reachable: bool
    models: tuple[str, ...] = ()
    message: str = ""
    hint: str = ""
    servers: tuple[ServerState, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Standing:
    """How one of several servers does now: calls under way, calls served since the start, and why it is left out.

    `failures` in a row; 0: it is used. `seconds` until it is tried again; 0.0: by the next call.
    """

    name: str
    busy: int = 0
    served: int = 0
    failures: int = 0
    seconds: float = 0.0
    reason: str = ""


def host_url(value: str | None) -> str:
    """A usable URL from what people put into OLLAMA_HOST: a bare host, host:port, or the listen address 0.0.0.0."""
    text = (value or "").strip().rstrip("/") or DEFAULT_HOST
    if "://" not in text:
        text = f"http://{text}"
    scheme, _, rest = text.partition("://")
    address, slash, path = rest.partition("/")
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        host, port = address, "11434" if scheme == "http" else "443"
    return f"{scheme}://{'127.0.0.1' if host in _EVERY_ADDRESS else host}:{port}{slash}{path}"


def ollama_urls(text: str) -> tuple[str, ...]:
    """The servers of OLLAMA_HOST, at least the usual one; raises `BadRecord`."""
    given = _split("OLLAMA_HOST", text) or (DEFAULT_HOST,)
    return _checked("OLLAMA_HOST", given, tuple(host_url(one) for one in given))


def openai_urls(text: str) -> tuple[str, ...]:
    """The servers of OPENAI_BASE_URL, as they were written; none for an empty text. Raises `BadRecord`."""
    given = _split("OPENAI_BASE_URL", text)
    return _checked("OPENAI_BASE_URL", given, given)


def shown(url: str) -> str:
    """Scheme, host and port of an address, for people: what stands before the host or after it may be a secret."""
    scheme = _SCHEME.match(url)
    rest = url[scheme.end() :] if scheme else url
    return (scheme[0] if scheme else "") + re.split(r"[/?#]", rest.rpartition("@")[2])[0]


def wrong_path(variable: str, url: str) -> tuple[str, str] | None:
    """What is wrong with the path of an address, and the address to write; None where the path may be right.

    The rest of a path, and what stands before the host, may be a secret: then only what is to go is named.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # told by those who ask there
        return None
    path = parts.path.rstrip("/")
    adds = _ADDED.get(variable)
    found = adds.search(path) if adds else None
    is_openai = variable == "OPENAI_BASE_URL"
    right = path[: found.start()] if found else path
    right = "/v1" if is_openai and right in ("", "/api") else right
    if right == path:
        return None
    is_public = "@" not in parts.netloc and not parts.query and right in ("", "/v1")
    tail = found[0] if found else path
    hint = f"Write {shown(url)}{right}" if is_public else f"Write the same address without {tail}"
    if not tail:
        return f"{variable} has no path; that of a server that speaks OpenAI's protocol is usually /v1.", hint
    why = "the program adds what follows the address by itself" if found else "OpenAI's protocol is spoken at /v1"
    return f"{variable} ends in {tail}, where nothing answers: {why}.", hint


def without_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """An address, and the name and password in it if there are any: clients write the address into their logs."""
    try:
        parts = urlsplit(url)
    except ValueError:  # told by those who ask there
        return url, None
    before, _, place = parts.netloc.rpartition("@")
    login = (unquote(parts.username or ""), unquote(parts.password or "")) if before else None
    return urlunsplit(parts._replace(netloc=place)), login


def masked(text: str) -> str:
    """Addresses as a page may show them: dots for a name and password, and for what follows a “?” or “#”."""
    return _SECRETS.sub(lambda found: _HIDDEN if found[1] is None else f"{found[1]}{_HIDDEN}@", text)


def unmasked(typed: str, before: str) -> str:
    """What was typed over `masked(before)`: each address that was left as it was, whole again. Raises `BadRecord`."""
    whole = {masked(one): one for one in re.split(r"[\s,]+", before)}
    found = "".join(whole.get(piece, piece) for piece in re.split(r"([\s,]+)", typed.strip()))
    if _HIDDEN in found:
        raise BadRecord(
            f"Expected an address with its name and password, found {_HIDDEN}, which only stands for them.",
            hint="Write them out, or leave the address as it was.",
        )
    return found


def names(urls: Sequence[str]) -> tuple[str, ...]:
    """What each server of a list is called; two that differ in what is not shown are numbered."""
    found = [shown(url) for url in urls]
    return tuple(
        name if found.count(name) == 1 else f"{name} ({found[:place].count(name) + 1})"
        for place, name in enumerate(found)
    )


def joined(kind: str, urls: Sequence[str], states: Sequence[ServerState]) -> ServerState:
    """What several servers are together: the models of all, and which of them do not answer. One: as it is."""
    if len(states) == 1:
        return states[0]
    models = tuple(dict.fromkeys(name for state in states for name in state.models))
    away = [place for place, state in enumerate(states) if not state.reachable]
    count = len(states)
    if not away and models:
        return ServerState(True, models, servers=tuple(states))
    if not away:
        return ServerState(True, (), f"None of the {count} {kind} servers has a model.", states[0].hint, tuple(states))
    hint = states[away[0]].hint
    if len(away) == count:
        return ServerState(False, (), f"None of the {count} {kind} servers answers.", hint, tuple(states))
    called = names(urls)
    silent = f"{' and '.join(called[place] for place in away)} {'does' if len(away) == 1 else 'do'} not"
    answering = f"{count - len(away)} of {count} {kind} servers {'answers' if count - len(away) == 1 else 'answer'}"
    return ServerState(True, models, f"{answering}; {silent}.", hint, tuple(states))


def version_of(model: str, state: ServerState) -> str:
    """What tells the versions of a model apart, "" where no server says it; several, where servers have different ones.

    A name without a tag means the latest, as it does for Ollama.
    """
    wanted = (model, f"{model}:latest")
    summary = {version for one in (state.servers or (state,)) for name, version in one.versions if name in wanted}
    return "+".join(sorted(summary))


def _split(variable: str, text: str) -> tuple[str, ...]:
    if not text.strip():
        return ()
    parts = [part.split() for part in text.split(",")]
    if not all(parts):
        raise BadRecord(
            f"{variable}: expected an address before and after each comma, found none.", hint="Take the comma out."
        )
    return tuple(one for part in parts for one in part)


def _checked(variable: str, given: tuple[str, ...], urls: tuple[str, ...]) -> tuple[str, ...]:
    may_tell = not any("@" in one for one in given)  # a password with a space in it stands in two of them
    for place, url in enumerate(urls):
        if not _is_address(url):
            found = repr(given[place][:80]) if may_tell else f"something else as number {place + 1}"
            raise BadRecord(
                f"{variable}: expected addresses such as http://localhost:8000, found {found}.",
                hint="Each needs http:// or https:// and a host; commas or spaces stand between them.",
            )
        check_url(variable, url)
        if url.rstrip("/") in [other.rstrip("/") for other in urls[:place]]:
            raise BadRecord(
                f"{variable}: expected each server once, found {shown(url)} twice.", hint="Take one of them out."
            )
    return urls


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its words may hold a part of the password
        return False
