"""The signed-in person, from the claims of the OpenID provider."""

from __future__ import annotations

from collections.abc import Mapping

from crag_core.app.access.permissions import NotAllowed, is_address
from crag_core.base.serialization import fingerprint

LONGEST_DAYS = 30
"""As long as Streamlit's cookie lives; a page that stays open for longer asks again too."""


def address_in(claims: Mapping[str, object]) -> str:
    """The e-mail address in the claims of an identity token, which the rights are granted to.

    Raises `NotAllowed` where there is none, or where the provider says that it has not been verified: whoever may write
    down any address there would have the rights of its owner. A provider that says nothing of it is trusted.
    """
    address = claims.get("email")
    if not address:
        raise NotAllowed(
            "Expected an e-mail address from the provider of sign-in, found none.",
            hint="Whoever runs this application can have the provider release the claim email to it.",
        )
    if not isinstance(address, str) or not is_address(address):
        raise NotAllowed(
            "Expected one e-mail address from the provider of sign-in, found something else.",
            hint="Have the address corrected at the provider, and sign in again.",
        )
    if claims.get("email_verified", True) not in (True, "true"):  # some providers write it as text
        raise NotAllowed(
            f"The provider of sign-in has not verified that {address} is yours.",
            hint="Confirm the address at the provider, and sign in again.",
        )
    return address


def check_age(claims: Mapping[str, object], now: float) -> None:
    """Raises `NotAllowed` for a sign-in older than `LONGEST_DAYS`; `now` in seconds since 1970, as the claim iat."""
    at = claims.get("iat")
    if isinstance(at, bool) or not isinstance(at, int | float):
        raise NotAllowed("Expected the time of the sign-in from its provider, found none.", hint="Sign in again.")
    if now - at > LONGEST_DAYS * 86_400:
        raise NotAllowed(f"You signed in more than {LONGEST_DAYS} days ago.", hint="Sign in again.")


def sign_in_of(claims: Mapping[str, object]) -> str:
    """A short name of one sign-in: another one of the same person has another."""
    return fingerprint({name: str(claims.get(name)) for name in ("iss", "sub", "iat", "nonce")})
