"""Whether the provider of sign-in is there, asked before anybody is sent to it."""

from __future__ import annotations

import json

from crag_core.auth_section import Provider
from crag_core.errors import CragError

_PATIENCE = 5.0  # seconds
_NEEDED = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderUnavailable(CragError):
    """The provider of sign-in does not answer, or not as one."""

    retryable = True


def check_provider(provider: Provider) -> None:
    """Read its description, as signing in will; raises `ProviderUnavailable`."""
    import httpx  # not before somebody signs in

    try:
        reply = httpx.get(provider.metadata_url, timeout=_PATIENCE, follow_redirects=True)
        reply.raise_for_status()
        found = reply.json()
    except httpx.HTTPStatusError as error:
        raise _unavailable(provider, f"it answers with the status {error.response.status_code}") from error
    except httpx.TimeoutException as error:
        raise _unavailable(provider, f"it has not answered within {_PATIENCE:.0f} seconds") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _unavailable(provider, "it does not answer") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _unavailable(provider, "what it says is no description of a provider") from error
    missing = [key for key in _NEEDED if not isinstance(found, dict) or not found.get(key)]
    if missing:
        raise _unavailable(provider, f"its description has no {', '.join(missing)}")


def _unavailable(provider: Provider, why: str) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"Nobody can sign in now: expected the provider of sign-in at {provider.host}, and {why}.",
        hint="Try again in a minute. If it stays away, tell whoever runs this application.",
    )
