"""The signed-in person, and whether they are an administrator. Without sign-in everybody is.

Whatever only administrators may do calls `require_administrator` where it is done; `is_administrator` only decides
what is drawn.
"""

from __future__ import annotations

import time

import streamlit as st

from crag_core.app.access import NotAllowed, People, address_in, check_age, read_people, sign_in_of
from crag_core.app.config import Config, load
from crag_core.base.concurrency.shared import shared

_MOST_ENDED = 10_000


def is_on() -> bool:
    return _settings().sign_in == "on"


def is_known() -> bool:
    """Whether the provider has said who this is; they may still not be let in, see `trouble`."""
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


def is_administrator() -> bool:
    """Everybody is with sign-in off; nobody whose address is not known is with sign-in on."""
    return not is_on() or _administrators().include(user())


def require_administrator() -> None:
    """For the first line of what only administrators may do; raises `NotAllowed`, whose text says who they are."""
    if not is_administrator():
        raise NotAllowed(refusal("do this"))


def refusal(action: str) -> str:
    """The one line in place of what somebody may not use: "Only ann@example.org may …"."""
    return _administrators().refusal(action)


def end() -> None:
    """This sign-in is over, in every tab and for every copy of its cookie, as far as this process goes."""
    over = _ended()
    over[sign_in_of(st.user)] = None
    while len(over) > _MOST_ENDED:
        over.pop(next(iter(over)), None)


def _administrators() -> People:
    return read_people("CRAG_ADMINISTRATORS", _settings().administrators)


def _entering() -> str:
    if sign_in_of(st.user) in _ended():
        raise NotAllowed("You have signed out.", hint="Sign in again.")
    check_age(st.user, time.time())
    address = address_in(st.user)
    people = read_people("CRAG_PEOPLE", _settings().people)
    if not people.include(address):
        raise NotAllowed(f"You are signed in as {address}. {people.refusal('use this application')}")
    return address


@shared
def _settings() -> Config:
    """Those of the process: what a session changes on the Settings page makes nobody an administrator."""
    return load()


@shared
def _ended() -> dict[str, None]:
    """The sign-ins that were ended by Sign out, oldest first: a session that is open does not look at its cookie."""
    return {}
