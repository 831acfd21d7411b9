"""Validates widget values from the browser before Streamlit or a callback reads them.

A session speaks by WebSocket messages, which need not come from our page. Streamlit looks at a choice only when it
draws the widget, after the callbacks have run, and at the type of a value not at all: an unknown policy was a KeyError,
a number in place of a text a TypeError at every redraw from then on. There is no public place for such a check, hence
the two methods of Streamlit that are wrapped here.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import streamlit as st
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.state.common import WidgetMetadata, unpack_widget_state_value
from streamlit.runtime.state.session_state import Serialized, SessionState

REFUSED = "Something was sent that this page does not offer, and it was not taken. What was chosen before stays chosen."
_TOLD, _HEARD = "incoming_refused", "incoming_heard"
_FILES = "file_uploader_state_value"


def check_all() -> None:
    """For app.py, in front of everything: from now on in every session. Once more changes nothing."""
    if hasattr(SessionState.set_widgets_from_proto, "__wrapped__"):
        return
    take_message, register = SessionState.set_widgets_from_proto, SessionState.register_widget

    @wraps(take_message)
    def take_checked(self: SessionState, states: WidgetStates) -> None:
        known = self._new_widget_state.widget_metadata
        _leave_out(self, states, [one for one in states.widgets if one.id in known and not fits(one, known[one.id])])
        take_message(self, states)

    @wraps(register)
    def register_checked(self: SessionState, metadata: WidgetMetadata[Any], user_key: str | None) -> Any:
        # What came before its widget was drawn for the first time, as after a restart of the server.
        kept = self._new_widget_state.states.get(metadata.id)
        if isinstance(kept, Serialized) and not fits(kept.value, metadata):
            del self._new_widget_state.states[metadata.id]
            self[_TOLD] = True
        return register(self, metadata, user_key)

    SessionState.set_widgets_from_proto = take_checked  # type: ignore[method-assign,assignment]
    SessionState.register_widget = register_checked  # type: ignore[method-assign]


def draw_refused() -> None:
    """For app.py: says once that something was refused."""
    if st.session_state.pop(_TOLD, False):
        st.warning(REFUSED, icon=":material/block:")


def fits(sent: WidgetState, widget: WidgetMetadata[Any]) -> bool:
    """Whether a value is of the widget's kind and, where it chooses among options, one of them."""
    kind = sent.WhichOneof("value")
    if kind is None:
        return True  # the default is meant
    # The browser sends the value of a whole-number input as an integer.
    if kind != widget.value_type and (kind, widget.value_type) != ("int_value", "double_value"):
        return False
    if kind == _FILES:
        return True  # reading it takes the files, which can be done once
    try:
        value = unpack_widget_state_value(sent)
        widget.deserializer(value)
        if widget.formatted_options is None:
            return True
        chosen = [value] if isinstance(value, str) else list(value)
        # An empty choice where there is a first one: no button of ours can be let go without another.
        is_missing = not chosen and widget.max_array_length == 1 and widget.deserializer(None) is not None
        return not is_missing and set(chosen) <= set(widget.formatted_options)
    except Exception:  # of Streamlit's readers, which expect what its own page sends
        return False


def _leave_out(session: SessionState, states: WidgetStates, wrong: list[WidgetState]) -> None:
    """A label that has changed comes back until the browser has the new one: what came before is no news."""
    heard = session[_HEARD] if _HEARD in session else {}  # noqa: SIM401  this mapping has no get()
    session[_HEARD] = {one.id: one.SerializeToString() for one in wrong}
    if any(heard.get(name) != text for name, text in session[_HEARD].items()):
        session[_TOLD] = True
    for one in wrong:
        states.widgets.remove(one)
