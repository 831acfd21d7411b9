"""The application with sign-in on, and a provider beside it that knows a few people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from tests.browser.conftest import QUICK, serve
from tests.stand_ins.oidc_server import CLIENT, SECRET, Account, OidcServer

COOKIE, COOKIE_SECRET = "_streamlit_user", "only for tests: forty signs, or a few more"
ANN, BOB = "ann@example.org", "bob@example.org"
ACCOUNTS = {
    "Ann": Account("1", {"email": ANN, "email_verified": True, "name": "Ann"}),
    "Bob": Account("2", {"email": "Bob@Example.org", "email_verified": True, "name": "Bob"}),
    "Eve": Account("3", {"email": ANN, "email_verified": False, "name": "Eve"}),
    "Nameless": Account("4", {"name": "Nameless"}),
    "Stranger": Account("5", {"email": "ann@example.org.evil.example", "email_verified": True}),
}


@dataclass(frozen=True)
class SignedIn:
    """An application that asks people to sign in at `provider`."""

    url: str
    provider: OidcServer
    home: Path

    @property
    def log(self) -> str:
        return (self.home / "app.log").read_text()


def write_secrets(folder: Path, provider: OidcServer, **changes: str) -> Path:
    """The file as docs/sign-in.md has it."""
    entries = {
        "redirect_uri": "http://localhost:{port}/oauth2callback",
        "cookie_secret": COOKIE_SECRET,
        "client_id": CLIENT,
        "client_secret": SECRET,
        "server_metadata_url": provider.metadata_url,
    } | changes
    path = folder / "secrets.toml"
    path.write_text("[auth]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in entries.items()))
    return path


@contextmanager
def serve_signed_in(home: Path, **environment: str) -> Iterator[SignedIn]:
    with OidcServer(ACCOUNTS) as provider:
        path = write_secrets(home, provider)
        given = {"CRAG_SIGN_IN": "on", "CRAG_PEOPLE": "@example.org", "CRAG_ADMINISTRATORS": ANN}
        given |= {"STREAMLIT_SECRETS_FILES": str(path)}
        with serve(home, program=QUICK, **{**given, **environment}) as url:
            provider.redirect_uris.append(f"{url}/oauth2callback")
            yield SignedIn(url, provider, home)


def choose_account(page: Page, app: SignedIn, account: str) -> None:
    """From the sign-in page to the provider and back."""
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("link", name=account, exact=True).click()
    page.wait_for_url(lambda url: urlsplit(url).netloc == urlsplit(app.url).netloc)


def sign_in(page: Page, app: SignedIn, account: str) -> None:
    page.goto(app.url)
    choose_account(page, app, account)
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def expect_sign_in_page(page: Page) -> None:
    """That page, and nothing of the application beside it."""
    expect(page.get_by_role("heading", name="CRAG Explorer")).to_be_visible()
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_have_count(0)
    expect(page.get_by_role("link", name="Documents")).to_have_count(0)
    expect(page.get_by_label("Your question")).to_have_count(0)


def told(words: str) -> re.Pattern[str]:
    """`words` on the page, among others."""
    return re.compile(re.escape(words))
