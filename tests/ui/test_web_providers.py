"""Web search with several providers, asked first and at once, through the real clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types.web import WebOutcome
from tests.stand_ins.duckduckgo_server import DuckDuckGoServer, WebResult
from tests.stand_ins.searxng_server import SearXNGServer
from tests.ui.conftest import ask, press, shown

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

CHESS = "Who won the chess championship of 1972?"
RESULT = WebResult("Chess in 1972", "https://example.org/chess", "Bobby Fischer won the chess championship of 1972.")


@pytest.fixture
def duck() -> Iterator[DuckDuckGoServer]:
    with DuckDuckGoServer([RESULT]) as server:
        yield server


@pytest.fixture
def searxng() -> Iterator[SearXNGServer]:
    with SearXNGServer([RESULT]) as server:
        yield server


def attempts(app: AppTest) -> list[tuple[str, WebOutcome]]:
    return [(one.provider, one.outcome) for one in app.session_state["trace"].web.attempts]


def test_approval_names_the_providers_in_order_and_asks_nobody(
    start: Start, duck: DuckDuckGoServer, searxng: SearXNGServer
) -> None:
    app = start(CRAG_WEB="ask", CRAG_WEB_PROVIDERS="searxng, duckduckgo", CRAG_SEARXNG_URL=searxng.url)
    assert "SearXNG, then DuckDuckGo, not asked yet" in shown(app)
    ask(app, CHESS)
    assert "Only this text would go to SearXNG, then DuckDuckGo" in shown(app)
    assert (searxng.heard, duck.queries) == ([], [])
    press(app, "Search with this")
    assert {heard.params["q"] for heard in searxng.heard} == {CHESS}
    assert duck.queries == [], "the first one had an answer"
    assert attempts(app) == [("SearXNG", WebOutcome.USED)]
    assert "Bobby Fischer" in shown(app) and "Asked in this order" not in shown(app)
