"""The page asks before any page of the web is read, with the addresses, and shows what came of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app import workbench
from crag_core.base.network.addresses import why_refused
from crag_core.websearch.pages import WebPages
from tests.security.servers import Asked, Said, answering
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.searxng_server import SearXNGServer
from tests.ui.conftest import Start, ask, press, shown

CHESS = "Who won the chess championship of 1972?"
TEXT = "Bobby Fischer won the chess championship of 1972 against Boris Spassky."
PAGE = Said(200, {"content-type": "text/html"}, lambda: [f"<p>{TEXT}</p>".encode()])


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    monkeypatch.setattr(workbench, "WebPages", partial(WebPages, why_refused=why_refused))
    with answering(lambda path: PAGE if path == "/chess" else Said(404)) as server:
        yield server


def asked(start: Start, site: Asked, searxng: SearXNGServer) -> AppTest:
    searxng.results = [WebResult(f"Chess {path}", f"{site.url}/{path}", "Chess in 1972.") for path in ("chess", "x")]
    app = start(CRAG_WEB="ask", CRAG_WEB_PROVIDERS="searxng", CRAG_SEARXNG_URL=searxng.url, CRAG_WEB_PAGES="on")
    ask(app, CHESS)
    assert "reads up to 3 pages of the results; you are asked before" in shown(app)
    press(app, "Search with this")
    return app


def test_addresses_are_listed_before_they_are_asked_and_each_outcome_after(start: Start, site: Asked) -> None:
    with SearXNGServer() as searxng:
        app = asked(start, site, searxng)
        assert "Read these pages?" in shown(app) and site.paths == []
        assert f"{site.url}/chess" in shown(app) and f"{site.url}/x" in shown(app)
        assert "none was graded" not in shown(app) and "no web result was kept" not in shown(app)
        assert "waiting for approval" in shown(app) and "in its place" not in shown(app)
        press(app, "Read them")
    assert sorted(site.paths) == ["/chess", "/robots.txt", "/x"]
    assert "Boris Spassky" in shown(app) and "2 results from SearXNG; 1 of 2 pages read." in shown(app)
    assert f"read: {len(TEXT)} characters, the best 1 of 1 chunk" in shown(app)
    assert "answered with HTTP 404; its snippet stands in its place" in shown(app)


def test_snippets_alone_are_used_where_the_pages_are_refused(start: Start, site: Asked) -> None:
    with SearXNGServer() as searxng:
        app = asked(start, site, searxng)
        press(app, "Use the snippets only")
    assert site.paths == [] and "refused by you; its snippet stands in its place" in shown(app)
    assert "Read these pages?" not in shown(app) and "Boris Spassky" not in shown(app)
