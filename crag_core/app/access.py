"""Who may do what, who is signed in, and the section [auth] of Streamlit's secrets. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from urllib.parse import urlsplit

from crag_core.base.errors import BadRecord, CragError
from crag_core.base.serialization import fingerprint

EVERYBODY, NOBODY = "*", "nobody"
_SHOWN = 3
# Only ASCII letters: Unicode lower-cases the Kelvin sign to k too, which would make two addresses equal.
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_HINT = "Write addresses (ann@example.org), whole domains (@example.org), * for everybody who signs in, or nobody."


class NotAllowed(CragError):
    """A signed-in person may not do this."""


@dataclass(frozen=True)
class People:
    """`entries` in lower case: addresses, domains beginning with "@", or `EVERYBODY`; () is nobody."""

    entries: tuple[str, ...]

    def include(self, address: str) -> bool:
        """Whether this address is among them, in whatever case; a text that is not an address is not."""
        sent = address.translate(_LOWER)
        return is_address(sent) and not {EVERYBODY, sent, f"@{sent.partition('@')[2]}"}.isdisjoint(self.entries)

    def refusal(self, action: str) -> str:
        """The message for somebody else: "Only ann@example.org and everybody of example.net may …"; at most 3 named."""
        if not self.entries:
            return f"Nobody may {action} here."
        names = [f"everybody of {one[1:]}" if one.startswith("@") else one for one in self.entries]
        names = ["everybody" if one == EVERYBODY else one for one in names]
        if len(names) > _SHOWN:
            names = [*names[:_SHOWN], f"{len(names) - _SHOWN} more"]
        return f"Only {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))} may {action}."


def read_people(variable: str, text: str) -> People:
    """Raises `BadRecord`, which names the variable, for an entry that is neither an address nor a domain."""
    entries = tuple(dict.fromkeys(entry.strip().translate(_LOWER) for entry in text.split(",")))
    for entry in entries:
        if entry in (EVERYBODY, NOBODY):
            if len(entries) > 1:
                raise BadRecord(f"{variable}: expected {entry!r} alone, found it among others in {text!r}.", hint=_HINT)
        elif not is_address(f"ann{entry}" if entry.startswith("@") else entry):
            raise BadRecord(f"{variable}: expected addresses or domains, found {entry!r}.", hint=_HINT)
    return People(() if entries == (NOBODY,) else entries)


def is_address(text: str) -> bool:
    """Whether this has the form of an e-mail address: a name, one "@", a domain."""
    name, at, domain = text.partition("@")
    is_domain = bool(domain) and "@" not in domain and domain.strip(".") == domain
    return bool(name and at) and is_domain and text.isprintable() and not set(text) & set(' ,;<>()"*')


# --- the signed-in person ---------------------------------------------------------------------------------------------

LONGEST_DAYS = 30
"""The lifetime of Streamlit's cookie; a page that stays open for longer asks for a new sign-in too."""
_CLOCKS_APART = 300.0  # seconds


def address_in(claims: Mapping[str, object]) -> str:
    """The e-mail address in the claims of an identity token, which is who somebody is.

    Raises `NotAllowed` where there is none, or where the provider says that it is not verified: otherwise a person
    could enter another's address there and pass for them. A provider that says nothing of it is trusted.
    """
    address = claims.get("email")
    if not isinstance(address, str) or not is_address(address):
        found, hint = "something else", "Have the address corrected at the provider, and sign in again."
        if not address:
            found = "none"
            hint = "Whoever runs this application can have the provider release the claim email to it."
        raise NotAllowed(f"Expected an e-mail address from the provider of sign-in, found {found}.", hint=hint)
    if claims.get("email_verified", True) not in (True, "true"):  # some providers write it as text
        raise NotAllowed(
            f"The provider of sign-in has not verified that {address} is yours.",
            hint="Confirm the address at the provider, and sign in again.",
        )
    return address


def check_age(claims: Mapping[str, object], now: float) -> None:
    """Raises `NotAllowed` for a sign-in older than `LONGEST_DAYS`; `now` in seconds since 1970, as the claim iat."""
    at = claims.get("iat")
    if isinstance(at, bool) or not isinstance(at, int | float) or not at <= now + _CLOCKS_APART:
        found = "none" if not isinstance(at, int | float) or at != at else "one that is still to come"
        raise NotAllowed(f"Expected the time of the sign-in from its provider, found {found}.", hint="Sign in again.")
    if at < now - LONGEST_DAYS * 86_400:
        raise NotAllowed(f"You signed in more than {LONGEST_DAYS} days ago.", hint="Sign in again.")


def sign_in_of(claims: Mapping[str, object]) -> str:
    """The id of one sign-in: each sign-in of the same person has its own."""
    return fingerprint({name: str(claims.get(name)) for name in ("iss", "sub", "iat", "nonce")})


# --- the sign-in providers --------------------------------------------------------------------------------------------

CALLBACK = "/oauth2callback"
_SHORTEST_SECRET = 32
_NEEDED = ("client_id", "client_secret", "server_metadata_url")
_SCOPE = "openid email profile"  # what Streamlit asks for by default
_AUTH_HINT = "docs/sign-in.md shows the whole section. CRAG_SIGN_IN=off lets everybody in who reaches the application."


@dataclass(frozen=True)
class Provider:
    """An OpenID provider. `name` is that of its section, "" for the one in [auth] itself."""

    name: str
    metadata_url: str
    scope: str

    @property
    def host(self) -> str:
        return urlsplit(self.metadata_url).hostname or ""

    @property
    def asks_for(self) -> str:
        """Which data of a person this application asks for, in words."""
        return "your name and e-mail address" if "profile" in self.scope.split() else "your e-mail address"


@dataclass(frozen=True)
class Auth:
    """`origin` is the only address of the application at which sign-in works, such as https://crag.example.org."""

    origin: str
    providers: tuple[Provider, ...]


def read_auth(section: object) -> Auth:
    """The settings in the section [auth]. Raises `BadRecord`, which names keys and never a secret."""
    if not isinstance(section, Mapping) or not section:
        raise _refused("a section [auth] in .streamlit/secrets.toml", "none that can be read")
    secret = section.get("cookie_secret")
    if not isinstance(secret, str) or len(secret) < _SHORTEST_SECRET:
        found = f"{len(secret)} characters" if isinstance(secret, str) else "none"
        raise _refused(f"a cookie_secret of at least {_SHORTEST_SECRET} characters", found)
    uri = section.get("redirect_uri")
    parts = urlsplit(str(uri).replace("{port}", "1"))
    if not isinstance(uri, str) or not _is_safe(uri) or not parts.path.endswith(CALLBACK):
        example = f"https://crag.example.org{CALLBACK} (http on localhost alone)"
        raise _refused(f"a redirect_uri such as {example}", repr(uri))
    named = {name: value for name, value in section.items() if isinstance(value, Mapping) and name != "client_kwargs"}
    providers = [_provider(name, value) for name, value in named.items()]
    if not providers or any(key in section for key in _NEEDED):
        providers.insert(0, _provider("", section))
    return Auth("" if "{port}" in uri else f"{parts.scheme}://{parts.netloc}", tuple(providers))


def _is_safe(url: str) -> bool:
    """Of https, or of http on this machine."""
    parts = urlsplit(url.replace("{port}", "1"))
    is_here = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    return bool(parts.hostname) and (parts.scheme == "https" or is_here)


def _provider(name: str, section: Mapping[str, object]) -> Provider:
    where = f"[auth.{name}]" if name else "[auth]"
    if "_" in name:
        raise _refused("no underscore in the name of a provider", where)
    missing = [key for key in _NEEDED if not isinstance(section.get(key), str) or not section[key]]
    if missing:
        raise _refused(f"{', '.join(_NEEDED)} in {where}", f"no {', '.join(missing)}")
    url = str(section["server_metadata_url"])
    if not _is_safe(url):
        raise _refused(f"the server_metadata_url of {where} to begin with https://", repr(url))
    more = section.get("client_kwargs")
    scope = str(more.get("scope", _SCOPE) if isinstance(more, Mapping) else _SCOPE)
    if not {"openid", "email"} <= set(scope.split()):
        raise _refused(f"the scope of {where} to hold openid and email", repr(scope))
    return Provider(name, url, scope)


def _refused(expected: str, found: str) -> BadRecord:
    return BadRecord(f"CRAG_SIGN_IN is on: expected {expected}, found {found}.", hint=_AUTH_HINT)
