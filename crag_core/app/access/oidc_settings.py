"""Reads and checks the section [auth] of Streamlit's secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from crag_core.base.errors import BadRecord

CALLBACK = "/oauth2callback"
_SHORTEST_SECRET = 32
_NEEDED = ("client_id", "client_secret", "server_metadata_url")
_HERE = ("localhost", "127.0.0.1", "::1")
_SCOPE = "openid email profile"  # what Streamlit asks for, unless told otherwise
_HINT = "docs/sign-in.md shows the whole section. CRAG_SIGN_IN=off lets everybody in who reaches the application."


@dataclass(frozen=True)
class Provider:
    """Who signs people in. `name` is that of its section, "" for the one that stands in [auth] itself."""

    name: str
    metadata_url: str
    scope: str

    @property
    def host(self) -> str:
        return urlsplit(self.metadata_url).hostname or ""

    @property
    def asks_for(self) -> str:
        """What of a person this application is told, in words."""
        return "your name and e-mail address" if "profile" in self.scope.split() else "your e-mail address"


@dataclass(frozen=True)
class Auth:
    """`origin` is the one address of the application at which signing in works, such as https://crag.example.org."""

    origin: str
    providers: tuple[Provider, ...]


def read_auth(section: object) -> Auth:
    """What [auth] says; None: there is none. Raises `BadRecord`, which names keys and never a secret."""
    if not isinstance(section, Mapping) or not section:
        raise _refused("expected a section [auth] in .streamlit/secrets.toml, found none that can be read")
    secret = section.get("cookie_secret")
    if not isinstance(secret, str) or len(secret) < _SHORTEST_SECRET:
        found = f"{len(secret)} characters" if isinstance(secret, str) else "none"
        raise _refused(f"expected a cookie_secret of at least {_SHORTEST_SECRET} characters, found {found}")
    origin = _origin(section.get("redirect_uri"))
    named = {name: value for name, value in section.items() if isinstance(value, Mapping) and name != "client_kwargs"}
    providers = [_provider(name, value) for name, value in named.items()]
    if not providers or any(key in section for key in _NEEDED):
        providers.insert(0, _provider("", section))
    return Auth(origin, tuple(providers))


def _origin(given: object) -> str:
    parts = urlsplit(given.replace("{port}", "1")) if isinstance(given, str) else None
    is_safe = parts is not None and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE))
    if not is_safe or parts is None or not parts.netloc or not parts.path.endswith(CALLBACK):
        raise _refused(
            f"expected a redirect_uri such as https://crag.example.org{CALLBACK} (http on localhost alone), "
            f"found {given!r}"
        )
    return "" if "{port}" in str(given) else f"{parts.scheme}://{parts.netloc}"


def _provider(name: str, section: Mapping[str, object]) -> Provider:
    where = f"[auth.{name}]" if name else "[auth]"
    if "_" in name:
        raise _refused(f"expected no underscore in the name of a provider, found {where}")
    missing = [key for key in _NEEDED if not isinstance(section.get(key), str) or not section[key]]
    if missing:
        raise _refused(f"expected {', '.join(_NEEDED)} in {where}, found no {', '.join(missing)}")
    url = str(section["server_metadata_url"])
    parts = urlsplit(url)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE)):
        raise _refused(f"expected the server_metadata_url of {where} to begin with https://, found {url!r}")
    more = section.get("client_kwargs")
    scope = more.get("scope", _SCOPE) if isinstance(more, Mapping) else _SCOPE
    if not {"openid", "email"} <= set(str(scope).split()):
        raise _refused(f"expected the scope of {where} to hold openid and email, found {scope!r}")
    return Provider(name, url, str(scope))


def _refused(message: str) -> BadRecord:
    return BadRecord(f"CRAG_SIGN_IN is on: {message}.", hint=_HINT)
