"""One line in place of what is not allowed."""

from __future__ import annotations

import streamlit as st

from ui.session import access
from ui.session.access import Right
from ui.text import plain


def is_allowed(right: Right) -> bool:
    """Whether somebody may; where not, a line says who does."""
    if access.may(right):
        return True
    st.caption(f":material/lock: {plain(access.refusal(right))}")
    return False
