"""Pages that a search found are away, silent, hostile or without end: their snippets are used, and the record says."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from functools import partial

import pytest

from crag_core.app import workbench as workbench_module
from crag_core.base.network.addresses import why_refused
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.passages import Origin
from crag_core.base.types.web import PageOutcome
from crag_core.trace.trace import Trace
from crag_core.websearch.pages import WebPages
from tests.faults.conftest import Open
from tests.faults.parts import QUESTION, broken_at, searching, step
from tests.security.servers import Said, answering
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.searxng_server import SearXNGServer

SNIPPET = "A yacht pays 14 pounds a night."
HTML = {"content-type": "text/html"}
PAGES = {
    "/good": Said(200, HTML, lambda: [b"<h1>Dues</h1><p>A yacht of nine metres pays 14 pounds a night.</p>"]),
    "/error": Said(500),
    "/endless": Said(200, HTML, lambda: itertools.repeat(b"<p>on and on</p>" * 999)),
    "/silent": Said(200, HTML, lambda: (time.sleep(0.1) or b" " for _ in itertools.count())),
    "/binary": Said(200, HTML, lambda: [b"\x89PNG\r\n\x1a\n" + bytes(500)]),
}


@pytest.fixture(autouse=True)
def _local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of this machine count as public ones; that others do not is in tests/websearch."""
    monkeypatch.setattr(workbench_module, "WebPages", partial(WebPages, why_refused=why_refused))


def run(open_bench: Open, *urls: str) -> Trace:
    with SearXNGServer([WebResult(f"Dues {url}", url, SNIPPET) for url in urls]) as web:
        bench = open_bench(web_providers="searxng", searxng_url=web.url, web_timeout=1.0)
        return bench.engine(searching(bench)).run(QUESTION)


def pages(trace: Trace) -> Iterator[tuple[PageOutcome, str]]:
    assert broken_at(trace) == "" and trace.answer is not None and trace.answer.state is AnswerState.COMPLETE
    assert trace.web is not None and all(one.origin is Origin.WEB for one in trace.web.passages)
    for page in trace.web.pages or ():
        yield page.outcome, page.message


def test_pages_away_or_hostile_leave_their_snippets_and_others_are_read(open_bench: Open) -> None:
    with answering(lambda path: PAGES.get(path, Said(404))) as site:
        trace = run(open_bench, f"{site.url}/good", f"{site.url}/error", f"{site.url}/endless")
        assert list(pages(trace)) == [
            (PageOutcome.READ, ""),
            (PageOutcome.FAILED, "answered with HTTP 500"),
            (PageOutcome.FAILED, "answered with more than 2 MB; the rest is not read"),
        ]
        assert trace.web is not None
        used = [one.text for one in trace.web.evidence(3)]
        assert used == ["# Dues\n\nA yacht of nine metres pays 14 pounds a night.", SNIPPET, SNIPPET]
        assert step(trace, "read pages").summary.startswith("1 of 3 pages read")
        hostile = run(open_bench, f"{site.url}/silent", f"{site.url}/binary", "http://127.0.0.1:9/away")
        silent, binary, away = (why for _, why in pages(hostile))
        assert silent == "was not read within 1 s" and "a PNG image" in binary and "could not be reached" in away
        assert len(site.paths) == 2 + 5, "each page once, robots.txt once a run"
