"""Sign-in and sign-out: checks settings and provider, and draws the page before sign-in."""

from __future__ import annotations

from importlib.util import find_spec

import streamlit as st

from crag_core.app.access import LONGEST_DAYS, Auth, Provider, read_auth
from crag_core.base.concurrency.cancellation import run
from crag_core.base.errors import BadRecord, CragError
from ui.session import access, app_state
from ui.shell.text import plain


def check() -> None:
    """Raises `CragError` where sign-in is on and cannot work: the application does not open then."""
    if not access.is_on():
        return
    _auth()
    if find_spec("authlib") is None:
        raise BadRecord("CRAG_SIGN_IN is on: expected the package Authlib, found none.", hint="pip install Authlib")
    if not st.get_option("server.enableXsrfProtection"):  # without it Streamlit does not read who is signed in
        raise BadRecord(
            "CRAG_SIGN_IN is on: expected server.enableXsrfProtection to be on, found it off.",
            hint="Take the option away from .streamlit/config.toml or the command line.",
        )


def is_passed() -> bool:
    """Whether this session may see anything of the application; False with settings of no use too."""
    try:
        return not access.is_on() or bool(access.user())
    except CragError:
        return False


def gate() -> None:
    """For app.py, before anything of the workbench is drawn: only who may enter gets past it."""
    if not access.is_on():
        return
    who = access.user()
    app_state.belong_to(who)
    if not who:
        _draw_page(_auth())
        st.stop()


def draw_who() -> None:
    """For the sidebar: who is signed in, and the way out."""
    if not access.is_on():
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f":material/person: {plain(access.user())}", width="content")
        st.button("Sign out", on_click=_leave, icon=":material/logout:", type="tertiary", key="sign_out")


def _draw_page(auth: Auth) -> None:
    page = st.container(horizontal_alignment="center")
    with page, st.container(border=True, width=480, gap="small", key="sign_in_page"):
        st.title("CRAG Explorer", anchor=False)
        known = access.trouble()
        if known is not None:
            st.error(plain(str(known)), icon=":material/lock:")
            st.button("Sign in with another account", on_click=_leave, icon=":material/switch_account:", type="primary")
            return
        url = st.context.url
        if auth.origin and url and not f"{url}/".startswith(f"{auth.origin}/"):
            st.warning(f"Signing in works at {plain(auth.origin)} only. Open that address.", icon=":material/warning:")
        if trouble := app_state.take_report():
            st.error(plain(trouble), icon=":material/error:")
        st.markdown("Sign in to go on.")
        for provider in auth.providers:
            label = f"Sign in with {provider.name}" if len(auth.providers) > 1 and provider.name else "Sign in"
            st.button(
                label, on_click=_enter, args=(provider,), icon=":material/login:", type="primary",
                key=f"sign_in_{provider.name}",
            )  # fmt: skip
        hosts = " or ".join(dict.fromkeys(provider.host for provider in auth.providers))
        asked = max((provider.asks_for for provider in auth.providers), key=len)
        st.caption(
            f"You are sent to {plain(hosts)}, which tells this application {asked}, and no password. A cookie keeps "
            f"you signed in for {LONGEST_DAYS} days, or until you sign out."
        )
        if st.query_params:
            st.caption("You came by a link: open it once more after signing in.")


def _enter(provider: Provider) -> None:
    """For a callback: to the provider, unless it is away, which is better said here than by an empty page."""
    try:
        check_provider(provider)
    except CragError as error:
        app_state.report(str(error))
    else:
        st.login(provider.name or None)


def _leave() -> None:
    """For a callback: the cookie goes, and so does everything that this session holds."""
    access.end()
    app_state.belong_to("")
    st.logout()


def _auth() -> Auth:
    return read_auth(st.secrets.get("auth") if st.secrets.load_if_toml_exists() else None)


# --- whether the provider answers, before somebody is sent there ------------------------------------------------------


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

    async def ask() -> object:
        bounds = http_guard.hooks(_LARGEST, _PATIENCE)
        async with httpx.AsyncClient(timeout=_PATIENCE, **bounds) as client:
            reply = await client.get(provider.metadata_url)
        reply.raise_for_status()
        return reply.json()

    try:
        found = run(ask())
    except http_guard.NotAsked as error:
        raise _unavailable(provider, f"it {error}", _SET) from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
        why = "what it says is no description of a provider"
        if isinstance(error, httpx.HTTPStatusError):
            why = f"it answers with the status {error.response.status_code}"
        elif isinstance(error, httpx.TimeoutException):
            why = f"it has not answered within {_PATIENCE:.0f} seconds"
        elif isinstance(error, httpx.HTTPError | httpx.InvalidURL):
            why = "it does not answer"
        raise _unavailable(provider, why) from error
    has = found if isinstance(found, dict) else {}
    missing = [key for key in _NEEDED if not isinstance(has.get(key), str) or not has[key]]
    if missing:
        raise _unavailable(provider, f"its description has no {', '.join(missing)}")


def _unavailable(provider: Provider, why: str, hint: str = _WAIT) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"Nobody can sign in now: expected the provider of sign-in at {provider.host}, and {why}.", hint=hint
    )
