"""Messages that no page of ours sends: refused in words, without a traceback, and what was chosen stays chosen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

from tests.browser.conftest import serve
from tests.browser.visitor import Visitor
from tests.security.pages import PAGES
from tests.ui.conftest import home, start  # noqa: F401  # fixtures
from ui.shell.incoming_messages import REFUSED

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]
Values = tuple[dict[str, Any], ...]

ONE: Values = ({"string_value": "no such thing"}, {"string_value": ""})
SOME: Values = ({"string_array_value": ["no such thing"]},)
TEXT: Values = ({"int_value": 99}, {"double_array_value": [1.0]})
LIST: Values = ({"string_value": "x"}, {"int_array_value": [99]})
JSON: Values = ({"string_value": "{"}, {"json_value": "[]"})
WRONG: dict[str, Values] = {
    "selectbox": (*ONE, *TEXT),
    "multiselect": (*SOME, *LIST),
    "button_group": (*SOME, *LIST, {"string_array_value": []}),
    "slider": ({"string_value": "x"}, {"bool_value": True}),
    "number_input": ({"double_value": float("nan")}, {"string_value": "x"}),
    "text_input": TEXT,
    "toggle": ({"string_value": "x"},),
    "dataframe": JSON,
    "file_uploader": ({"string_value": "x"}, {"json_value": "{}"}),
}
"""What is sent for each kind of widget: an option that is not offered, none, and values of other kinds."""


def state_of(widget: str, values: dict[str, Any]) -> WidgetState:
    state = WidgetState(id=widget)
    for name, value in values.items():
        if name.endswith("array_value"):
            getattr(state, name).SetInParent()
            getattr(state, name).data.extend(value)
        else:
            setattr(state, name, value)
    return state


def widgets_of(node: Any) -> Iterator[tuple[str, str]]:
    """(kind, id) of all on the page; of a list that takes new options every text is one."""
    proto = getattr(node, "proto", None)
    if getattr(proto, "id", ""):
        yield "text_input" if getattr(proto, "accept_new_options", False) else node.type, proto.id
    for child in getattr(node, "children", {}).values():
        yield from widgets_of(child)


def send(app: AppTest, state: WidgetState) -> None:
    others = [one for one in app._tree.get_widget_states().widgets if one.id != state.id]
    app._run(WidgetStates(widgets=[*others, state]))


def values_of(app: AppTest) -> dict[str, Any]:
    return {one.id: one.SerializeToString() for one in app._tree.get_widget_states().widgets}


class Unforgetting(dict[str, WidgetState]):
    def clear(self) -> None:
        """As a tab that comes back to a server that was started again."""


def test_no_widget_of_any_page_takes_what_it_does_not_offer(
    start: Start,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried, seen = set(), set[str]()
    for page in ("", *PAGES):
        app = start(page)
        before = values_of(app)
        for kind, widget in list(widgets_of(app._tree)):
            if widget in seen:  # of the sidebar, which stands beside every page
                continue
            seen.add(widget)
            for values in WRONG.get(kind, ()):
                send(app, state_of(widget, values))
                where = f"{page or 'pages/ask.py'}, {kind} {widget.rpartition('-')[2]}, {values}"
                assert not app.exception, where
                assert [one.value for one in app.warning if one.value == REFUSED] == [REFUSED], where
                assert values_of(app) == before, where
                tried.add(kind)
            app.run()
            assert REFUSED not in [one.value for one in app.warning], "told once"
    assert tried == set(WRONG)
    assert [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR] == []


@pytest.mark.exhaustive
def test_a_real_session_refuses_them_too_and_goes_on(home: Path, tmp_path: Path) -> None:  # noqa: F811
    async def attack(url: str) -> None:
        visitor = Visitor(url, "V001")
        await visitor.open()
        await visitor.until(lambda: visitor.has("button", "Ask"))
        await visitor.settled()
        policy, evaluator = (visitor.one("selectbox", label) for label in ("Policy", "Evaluator"))
        chosen = policy.options[policy.default]
        for widget, values in (
            (policy, ONE[0]),
            (policy, TEXT[0]),
            (evaluator, ONE[1]),
            (evaluator, {"string_array_value": ["x"]}),
            (visitor.one("text_input", "Your question"), TEXT[0]),
        ):
            await visitor._rerun(state_of(widget.id, values))
            await visitor.until(lambda: REFUSED in visitor.text, 60)
            await visitor._rerun()
            await visitor.until(lambda: REFUSED not in visitor.text, 60)
        other = next(one for one in policy.options if one != chosen)
        await visitor.choose("Policy", other)
        await visitor.settled()
        assert REFUSED not in visitor.text
        await visitor.close()

        early = Visitor(url, "V002")  # sends before its page was drawn for the first time
        early._widgets = Unforgetting({one.id: state_of(one.id, SOME[0]) for one in (policy, evaluator)})
        early.query = "policy=nonsense&evaluator=&thresholds=nan&strips=7"
        await early.open()
        await early.until(lambda: early.has("button", "Ask"), 60)
        await early.settled()
        await early.close()
        assert [error for error in visitor.errors + early.errors if "disconnected" not in error] == []

    with serve(home, CRAG_CACHE="off") as url:
        asyncio.run(attack(url))
        log = (home / "app.log").read_text()
    assert "Traceback" not in log and "Error:" not in log, log[-3000:]
