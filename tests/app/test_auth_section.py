"""The section [auth] of Streamlit's secrets: what can work, and what is refused before anybody is let in."""

from __future__ import annotations

from typing import Any

import pytest

from crag_core.app.access import read_auth
from crag_core.base.errors import BadRecord

GOOD = {
    "redirect_uri": "https://crag.example.org/oauth2callback",
    "cookie_secret": "0123456789abcdef0123456789abcdef",
    "client_id": "crag",
    "client_secret": "hush-hush",
    "server_metadata_url": "https://login.example.org/.well-known/openid-configuration",
}
PROVIDER = {key: GOOD[key] for key in ("client_id", "client_secret", "server_metadata_url")}
COMMON = {key: GOOD[key] for key in ("redirect_uri", "cookie_secret")}


def test_a_whole_section_is_read() -> None:
    auth = read_auth(GOOD)
    assert auth.origin == "https://crag.example.org"
    (provider,) = auth.providers
    assert (provider.name, provider.host, provider.asks_for) == (
        "",
        "login.example.org",
        "your name and e-mail address",
    )


def test_without_the_profile_only_the_address_is_asked_for() -> None:
    (provider,) = read_auth({**GOOD, "client_kwargs": {"scope": "openid email"}}).providers
    assert provider.asks_for == "your e-mail address"


def test_several_providers_have_sections_of_their_own() -> None:
    auth = read_auth({**COMMON, "google": PROVIDER, "staff": PROVIDER})
    assert [provider.name for provider in auth.providers] == ["google", "staff"]
    auth = read_auth({**GOOD, "staff": PROVIDER})
    assert [provider.name for provider in auth.providers] == ["", "staff"]


@pytest.mark.parametrize("uri", ["http://localhost:8501/oauth2callback", "http://127.0.0.1:8501/oauth2callback"])
def test_this_machine_needs_no_certificate(uri: str) -> None:
    assert read_auth({**GOOD, "redirect_uri": uri}).origin == uri.removesuffix("/oauth2callback")
    assert read_auth({**GOOD, "redirect_uri": "http://localhost:{port}/oauth2callback"}).origin == ""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cookie_secret": "short"}, "cookie_secret of at least 32 characters, found 5 characters"),
        ({"cookie_secret": None}, "cookie_secret of at least 32 characters, found none"),
        ({"redirect_uri": None}, "a redirect_uri such as .*, found None"),
        ({"redirect_uri": "https://crag.example.org/"}, "found 'https://crag.example.org/'"),
        ({"redirect_uri": "http://crag.example.org/oauth2callback"}, r"\(http on localhost alone\)"),
        ({"redirect_uri": "/oauth2callback"}, "a redirect_uri such as"),
        ({"redirect_uri": "javascript:x//oauth2callback"}, "a redirect_uri such as"),
        ({"client_id": ""}, r"in \[auth\], found no client_id"),
        ({"client_secret": None, "client_id": 7}, "found no client_id, client_secret"),
        ({"server_metadata_url": "http://login.example.org/x"}, "server_metadata_url of .* to begin with https://"),
        ({"server_metadata_url": "login"}, "server_metadata_url of .* to begin with https://"),
        ({"client_kwargs": {"scope": "openid"}}, r"scope of \[auth\] to hold openid and email, found 'openid'"),
        ({"my_staff": PROVIDER}, "no underscore in the name of a provider"),
        ({"staff": {"client_id": "x"}}, r"in \[auth.staff\], found no client_secret, server_metadata_url"),
    ],
)
def test_what_cannot_work_is_refused_and_no_secret_is_told(change: dict[str, Any], told: str) -> None:
    with pytest.raises(BadRecord, match=f"CRAG_SIGN_IN is on: expected .*{told}") as found:
        read_auth({**GOOD, **change})
    assert "docs/sign-in.md" in found.value.hint
    for secret in (GOOD["cookie_secret"], GOOD["client_secret"]):
        assert secret not in str(found.value)


@pytest.mark.parametrize("section", [None, {}, "auth", [], 7])
def test_without_a_section_nobody_is_let_in(section: object) -> None:
    with pytest.raises(BadRecord, match=r"expected a section \[auth\] in .streamlit/secrets.toml"):
        read_auth(section)
