"""Sign-in and rights in a real browser, at a provider that checks what a real one checks."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from itsdangerous import TimestampSigner, URLSafeTimedSerializer
from joserfc.jwk import RSAKey
from playwright.sync_api import Page, WebSocket, expect

from crag_core.app.workbench import Choice
from crag_core.evaluators.policies import suit
from tests.browser.conftest import QUICK, ask, quick_home, serve
from tests.stand_ins.oidc_server import CLIENT, SECRET, Account, OidcServer

pytestmark = pytest.mark.browser

QUESTION = "How high is the tower of the lighthouse?"
COOKIE, COOKIE_SECRET = "_streamlit_user", "only for tests: forty signs, or a few more"
ANN = "ann@example.org"
ONLY_ANN = f"Only {ANN} may"
ACCOUNTS = {
    "Ann": Account("1", {"email": ANN, "email_verified": True, "name": "Ann"}),
    "Bob": Account("2", {"email": "Bob@Example.org", "email_verified": True, "name": "Bob"}),
}


@dataclass(frozen=True)
class SignedIn:
    """An application that asks people to sign in at `provider`."""

    url: str
    provider: OidcServer
    run: str
    """The id of one that Ann asked for."""


def write_secrets(folder: Path, provider: OidcServer) -> Path:
    """The file as docs/sign-in.md has it."""
    entries = {
        "redirect_uri": "http://localhost:{port}/oauth2callback",
        "cookie_secret": COOKIE_SECRET,
        "client_id": CLIENT,
        "client_secret": SECRET,
        "server_metadata_url": provider.metadata_url,
    }
    path = folder / "secrets.toml"
    path.write_text("[auth]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in entries.items()))
    return path


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


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, lighthouse: Path) -> Iterator[SignedIn]:
    """With one document; each test leaves its provider as it was."""
    home = tmp_path_factory.mktemp("home")
    bench = quick_home(home, (lighthouse.name, lighthouse.read_bytes()))
    run = bench.engine(Choice(suit(bench.policies["paper"], "cross-encoder"), "cross-encoder")).run(QUESTION)
    bench.history.save(run, ANN)
    given = {"CRAG_SIGN_IN": "on", "CRAG_PEOPLE": "@example.org", "CRAG_ADMINISTRATORS": ANN}
    with OidcServer(ACCOUNTS) as provider:
        given |= {"STREAMLIT_SECRETS_FILES": str(write_secrets(home, provider))}
        with serve(home, program=QUICK, **given) as url:
            provider.redirect_uris.append(f"{url}/oauth2callback")
            yield SignedIn(url, provider, run.id)


def listen(page: Page) -> list[bytes]:
    """All that the server says to a page from now on."""
    heard: list[bytes] = []

    def keep(socket: WebSocket) -> None:
        socket.on("framereceived", lambda said: heard.append(said if isinstance(said, bytes) else said.encode()))

    page.on("websocket", keep)
    return heard


def sign_cookie(claims: dict[str, object], secret: str = COOKIE_SECRET, days_ago: float = 0.0) -> str:
    """As the application signs its own."""

    class Then(TimestampSigner):
        def get_timestamp(self) -> int:
            return int(time.time() - days_ago * 86_400)

    return str(URLSafeTimedSerializer(secret, salt=COOKIE, signer=Then).dumps(json.dumps(claims)))


def claims_of(app: SignedIn, **changes: object) -> dict[str, object]:
    usual: dict[str, object] = {"email": ANN, "email_verified": True, "sub": "1", "iss": app.provider.url, "nonce": "n"}
    return {**usual, "iat": int(time.time()), "origin": app.url, "is_logged_in": True, "provider": "default", **changes}


def bring_cookie(page: Page, app: SignedIn, value: str) -> None:
    page.context.add_cookies([{"name": COOKIE, "value": value, "url": app.url}])
    page.goto(app.url)


def test_nothing_is_seen_before_somebody_signs_in(other_page: Page, app: SignedIn) -> None:
    id_ = app.run
    heard = listen(other_page)
    for path in ("", f"?run={id_}", "history", f"documents?run={id_}"):  # tests/ui looks at the gate of every page
        other_page.goto(f"{app.url}/{path}")
        expect_sign_in_page(other_page)
    said = b"\n".join(heard)
    assert b"CRAG Explorer" in said  # else nothing was heard at all
    for secret in (b"lighthouse", b"Skerry", b"42 metres", id_.encode(), b"CRAG_HOME", b"Ollama", ANN.encode()):
        assert secret not in said.replace(f"run={id_}".encode(), b""), secret


def test_an_address_of_a_file_that_nobody_was_given_leads_nowhere(app: SignedIn) -> None:
    for path in ("media/0123456789abcdef0123456789abcdef.pdf", "_stcore/agent/interact", "app/static/x"):
        try:
            with urlopen(f"{app.url}/{path}", timeout=5) as reply:
                assert b"lighthouse" not in reply.read(), path
        except HTTPError as error:
            assert error.code in (400, 403, 404, 405), path


def test_two_people_see_and_do_what_they_may_and_after_signing_out_the_next_in_the_tab_sees_nothing_of_the_first(
    page: Page, other_page: Page, app: SignedIn
) -> None:
    sign_in(page, app, "Ann")
    expect(page.get_by_text(told(ANN))).to_be_visible()
    page.goto(f"{app.url}/settings")
    expect(page.get_by_role("textbox", name="Ollama address")).to_be_visible()
    expect(page.get_by_text("docs/settings.md")).to_be_visible()

    bob = other_page
    sign_in(bob, app, "Bob")
    expect(bob.get_by_text(told("Bob@Example.org"))).to_be_visible()
    expect(bob.get_by_text(QUESTION)).to_have_count(0)
    ask(bob, QUESTION)
    expect(bob.get_by_role("heading", name="lighthouse.pdf, page 2")).to_be_visible()

    bob.goto(f"{app.url}/settings")
    expect(bob.get_by_text(told(f"{ONLY_ANN} see and change the servers."))).to_be_visible()
    expect(bob.get_by_role("textbox", name="Ollama address")).to_have_count(0)
    expect(bob.get_by_text("docs/settings.md")).to_have_count(0)
    assert app.provider.problems == []

    # Ann signs out, and Bob in at the same tab.
    logouts = app.provider.logouts
    page.goto(app.url)
    ask(page, "What did Ann ask in private?")
    expect(page.get_by_role("button", name="Share")).to_be_visible()
    other_tab = page.context.new_page()
    other_tab.goto(app.url)
    expect(other_tab.get_by_role("button", name="Sign out")).to_be_visible()
    cookie = next(one for one in page.context.cookies() if one["name"] == COOKIE)

    page.get_by_role("button", name="Sign out").click()
    expect_sign_in_page(page)
    assert app.provider.logouts == logouts + 1  # at the provider too
    assert COOKIE not in [one["name"] for one in page.context.cookies()]

    # A tab that was left open is out at its next step, and so is a copy of the cookie.
    ask(other_tab, "Is anybody there?")
    expect(other_tab.get_by_text("You have signed out.")).to_be_visible()
    expect(other_tab.get_by_label("Your question")).to_have_count(0)
    other_tab.close()
    bring_cookie(page, app, cookie["value"])
    expect(page.get_by_text("You have signed out.")).to_be_visible()
    page.context.clear_cookies(name=COOKIE)

    heard = listen(page)
    sign_in(page, app, "Bob")
    expect(page.get_by_text("See why your RAG answered what it answered.")).to_be_visible()
    assert b"in private" not in b"".join(heard)
    assert "run=" not in page.url


def test_a_cookie_that_was_forged_or_is_too_old_opens_nothing(page: Page, app: SignedIn) -> None:
    bring_cookie(page, app, sign_cookie(claims_of(app)))  # a good one opens, so the others fail for their own reason
    expect(page.get_by_text(told(ANN))).to_be_visible()
    for bad in (
        sign_cookie(claims_of(app), secret="another secret of the same length, or so"),
        sign_cookie(claims_of(app), days_ago=32),
        sign_cookie(claims_of(app, origin="https://elsewhere.example")),
        sign_cookie(claims_of(app, is_logged_in=False)),
        sign_cookie(claims_of(app))[:-4] + "AAAA",
        base64.urlsafe_b64encode(json.dumps(claims_of(app)).encode()).decode(),
    ):
        page.context.clear_cookies()
        bring_cookie(page, app, bad)
        expect_sign_in_page(page)
    page.context.clear_cookies()
    bring_cookie(page, app, sign_cookie(claims_of(app, iat=int(time.time()) - 31 * 86_400)))
    expect(page.get_by_text("You signed in more than 30 days ago.")).to_be_visible()
    expect(page.get_by_label("Your question")).to_have_count(0)


@pytest.mark.exhaustive
def test_a_token_that_the_provider_did_not_sign_for_this_visit_opens_nothing(page: Page, app: SignedIn) -> None:
    provider = app.provider
    try:
        provider.signed_by = RSAKey.generate_key(2048, {"kid": "of-today"})
        page.goto(app.url)
        choose_account(page, app, "Ann")
        expect_sign_in_page(page)
        provider.signed_by, provider.nonce = None, "of another visit"
        page.goto(app.url)
        choose_account(page, app, "Ann")
        expect_sign_in_page(page)
    finally:
        provider.signed_by = provider.nonce = None
    page.goto(f"{app.url}/oauth2callback?code=guessed&state=guessed")
    expect_sign_in_page(page)
    choose_account(page, app, "Nobody")  # somebody who changes their mind
    expect_sign_in_page(page)
    sign_in(page, app, "Ann")


@pytest.mark.exhaustive
def test_sign_in_that_is_not_set_up_opens_nothing(page: Page, tmp_path: Path) -> None:
    (tmp_path / "sample-indexed").touch()
    with serve(tmp_path, program=QUICK, CRAG_SIGN_IN="on", STREAMLIT_SECRETS_FILES=str(tmp_path / "none.toml")) as url:
        for path in ("documents", "", "settings"):
            page.goto(f"{url}/{path}")
            expect(page.get_by_text("The application cannot start with these settings")).to_be_visible()
            expect(page.get_by_text("CRAG_SIGN_IN is on: expected a section")).to_be_visible()
            expect(page.get_by_label("Your question")).to_have_count(0)
            expect(page.get_by_test_id("stSidebar")).to_have_count(0)
