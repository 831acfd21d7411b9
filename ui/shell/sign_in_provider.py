"""Checks that the OpenID provider answers, before somebody is redirected to it."""

from __future__ import annotations

from crag_core.app.access.oidc_settings import Provider
from crag_core.base.errors import CragError

_PATIENCE = 5.0  # seconds until something comes, and again for all of it
_LARGEST = 1_000_000
"""Bytes of a description; one has some thousand."""
_WAIT = "Try again in a minute. If it stays away, tell whoever runs this application."
_SET = (
    "Tell whoever runs this application: server_metadata_url in .streamlit/secrets.toml has to be the address of the "
    "provider's description itself."
)
_NEEDED = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderUnavailable(CragError):
    """The provider of sign-in does not answer, or not as one."""

    retryable = True


def check_provider(provider: Provider) -> None:
    """Read its description, as signing in will; raises `ProviderUnavailable`.

    No redirect is followed, as Authlib, which reads it again to sign somebody in, follows none either.
    """
    import httpx  # not before somebody signs in

    from crag_core.base.network import http_guard

    try:
        with http_guard.client(_LARGEST, _PATIENCE, timeout=_PATIENCE) as client:
            reply = client.get(provider.metadata_url)
        reply.raise_for_status()
        found = reply.json()
    except http_guard.NotAsked as error:
        raise _unavailable(provider, f"it {error}", _SET) from error
    except httpx.HTTPStatusError as error:
        raise _unavailable(provider, f"it answers with the status {error.response.status_code}") from error
    except httpx.TimeoutException as error:
        raise _unavailable(provider, f"it has not answered within {_PATIENCE:.0f} seconds") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _unavailable(provider, "it does not answer") from error
    except (ValueError, RecursionError) as error:
        raise _unavailable(provider, "what it says is no description of a provider") from error
    has = found if isinstance(found, dict) else {}
    missing = [key for key in _NEEDED if not isinstance(has.get(key), str) or not has[key]]
    if missing:
        raise _unavailable(provider, f"its description has no {', '.join(missing)}")


def _unavailable(provider: Provider, why: str, hint: str = _WAIT) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"Nobody can sign in now: expected the provider of sign-in at {provider.host}, and {why}.",
        hint=hint,
    )
