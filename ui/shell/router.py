"""Sends every page through app.py.

A folder named pages/ makes Streamlit serve its files as pages of their own until st.navigation is called for the first
time in the server's life. Somebody whose link leads straight to a page could be that first one.
"""

from __future__ import annotations

import streamlit as st

from ui.shell import sign_in

_ROUTED = "router_routed"
_WANTED = "router_wanted"


def enter(page: str) -> None:
    """First line of a page: go through app.py, which may ask to sign in, when this session has not, and come back."""
    if _ROUTED not in st.session_state or not sign_in.is_passed():
        asked = {name: st.query_params.get_all(name) for name in st.query_params}
        st.session_state[_WANTED] = page, asked
        st.switch_page("app.py")


def mark_routed() -> None:
    """For app.py, once its navigation stands."""
    st.session_state[_ROUTED] = True
    wanted = st.session_state.pop(_WANTED, None)
    if wanted:
        page, asked = wanted
        st.switch_page(page, query_params=asked)
