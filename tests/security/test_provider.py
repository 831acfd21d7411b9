"""What signing in asks of its provider: one description, at one address, with an end; nobody is led elsewhere."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from crag_core.app.access import Provider
from crag_core.base.network import http_guard
from tests.security.servers import Asked, Said, answering
from ui.shell import sign_in as of_sign_in
from ui.shell.sign_in import ProviderUnavailable, check_provider

PATH = "/.well-known/openid-configuration"
METADATA = "http://169.254.169.254/latest/meta-data/iam/security-credentials/"
NEEDED = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
GOOD = dict.fromkeys(NEEDED, "https://login.example.org/x")


def at(server: Asked, path: str = PATH) -> Provider:
    return Provider("", f"{server.url}{path}", "openid email profile")


def saying(body: Any) -> Said:
    return Said(headers={"content-type": "application/json"}, pieces=lambda: [json.dumps(body).encode()])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_to_metadata_is_followed(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []
    monkeypatch.setattr(http_guard, "why_refused", lambda host: reached.append(host) or "")
    with (
        answering(lambda path: Said(status, {"location": METADATA})) as server,
        pytest.raises(ProviderUnavailable, match="sends requests on to another address, which is not") as refused,
    ):
        check_provider(at(server))
    assert "secrets.toml" in refused.value.hint
    assert server.paths == [PATH] and set(reached) == {"127.0.0.1"}, "it was asked once, and nobody else"


@pytest.mark.parametrize("address", ["169.254.169.254", "[fe80::1]", "2852039166", "metadata.google.internal"])
def test_a_provider_at_metadata_is_never_asked(address: str) -> None:
    with pytest.raises(ProviderUnavailable, match="was not asked, since") as refused:
        check_provider(Provider("", f"https://{address}{PATH}", "openid email"))
    assert "secrets.toml" in refused.value.hint


def test_nor_is_one_whose_name_leads_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(http_guard, "_look_up", lambda host: ["169.254.169.254"])
    with pytest.raises(ProviderUnavailable, match=r"was not asked, since 169\.254\.169\.254"):
        check_provider(Provider("", f"https://login.example.org{PATH}", "openid email"))


def test_a_description_without_end_is_given_up() -> None:
    with (
        answering(lambda path: Said(pieces=lambda: itertools.repeat(b" " * 100_000))) as server,
        pytest.raises(ProviderUnavailable, match="more than 1 MB"),
    ):
        check_provider(at(server))


def test_one_that_drips_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def drip() -> Iterator[bytes]:
        pause = threading.Event()
        while not pause.wait(0.02):
            yield b" "

    monkeypatch.setattr(of_sign_in, "_PATIENCE", 0.5)
    with (
        answering(lambda path: Said(pieces=drip)) as server,
        pytest.raises(ProviderUnavailable, match=r"went on answering for more than 0\.5 s"),
    ):
        check_provider(at(server))


@pytest.mark.parametrize(
    "body", [None, 5, [], ["issuer"], {}, "issuer", dict.fromkeys(NEEDED, 5), {**GOOD, "jwks_uri": ""}], ids=json.dumps
)
def test_json_of_another_shape_is_no_description(body: Any) -> None:
    with (
        answering(lambda path: saying(body)) as server,
        pytest.raises(ProviderUnavailable, match=r"its description has no .*jwks_uri"),
    ):
        check_provider(at(server))


def test_authlib_follows_none_either() -> None:
    """It reads the description itself before it sends somebody to the provider."""
    from authlib.integrations.starlette_client import OAuth

    with (
        answering(lambda path: saying(GOOD)) as target,
        answering(lambda path: Said(302, {"location": f"{target.url}{PATH}"})) as server,
    ):
        led_on = OAuth().register("x", client_id="x", server_metadata_url=f"{server.url}{PATH}")
        with pytest.raises(Exception, match="302"):
            asyncio.run(led_on.load_server_metadata())
        assert target.paths == []
        sound = OAuth().register("x", client_id="x", server_metadata_url=f"{target.url}{PATH}")
        assert asyncio.run(sound.load_server_metadata())["issuer"] == GOOD["issuer"]
