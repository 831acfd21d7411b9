"""The signed-in person and their permissions. Without sign-in everything is allowed.

Whatever somebody may be denied calls `require` where it is done; `may` only decides what is drawn.
"""

from __future__ import annotations

import time

import streamlit as st

from crag_core.app.access import Grants, NotAllowed, Right, address_in, check_age, sign_in_of
from crag_core.app.config import Config, load

__all__ = ["Right", "end", "grants", "is_known", "is_on", "may", "refusal", "require", "trouble", "user"]

_MOST_ENDED = 10_000


def is_on() -> bool:
    """Whether people sign in here."""
    return _settings().sign_in == "on"


def is_known() -> bool:
    """Whether the provider has said who this is; they may still lack the right to enter, see `trouble`."""
    return is_on() and bool(st.user.get("is_logged_in"))


def user() -> str:
    """The address of who is signed in and may enter; "" for everybody else, and with sign-in off.

    Known only while a page is drawn or a callback runs: a thread must be given it.
    """
    try:
        return _entering() if is_known() else ""
    except NotAllowed:
        return ""


def trouble() -> NotAllowed | None:
    """Why somebody whom the provider knows may not enter."""
    try:
        if is_known():
            _entering()
    except NotAllowed as error:
        return error
    return None


def may(right: Right) -> bool:
    """Everybody may with sign-in off; nobody whose address is not known may with sign-in on."""
    return not is_on() or grants().allows(right, user())


def require(right: Right) -> None:
    """For the first line of what needs a right; raises `NotAllowed`, whose text says who may."""
    if not may(right):
        raise NotAllowed(refusal(right))


def refusal(right: Right) -> str:
    """The one line in place of what somebody may not use."""
    return grants().refusal(right)


def end() -> None:
    """This sign-in is over, in every tab and for every copy of its cookie, as far as this process goes."""
    over = _ended()
    over[sign_in_of(st.user)] = None
    while len(over) > _MOST_ENDED:
        over.pop(next(iter(over)), None)


@st.cache_resource(show_spinner=False)
def grants() -> Grants:
    return _settings().grants


def _entering() -> str:
    if sign_in_of(st.user) in _ended():
        raise NotAllowed("You have signed out.", hint="Sign in again.")
    check_age(st.user, time.time())
    address = address_in(st.user)
    if not grants().allows(Right.ENTER, address):
        raise NotAllowed(f"You are signed in as {address}. {grants().refusal(Right.ENTER)}")
    return address


@st.cache_resource(show_spinner=False)
def _settings() -> Config:
    """Those of the process: what a session changes on the Settings page changes no right."""
    return load()


@st.cache_resource(show_spinner=False)
def _ended() -> dict[str, None]:
    """The sign-ins that were ended by Sign out, oldest first: a session that is open does not look at its cookie."""
    return {}
