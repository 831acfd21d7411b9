"""A web provider that is away, dies, is silent, drips, talks nonsense: the documents answer, the record says why."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crag_core.app.workbench import Workbench
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.passages import Origin
from crag_core.base.types.web import WebOutcome
from crag_core.trace.trace import Trace
from tests.faults.conftest import Open
from tests.faults.parts import QUESTION, broken_at, searching, step
from tests.stand_ins.duckduckgo_server import DuckDuckGoServer, WebResult
from tests.stand_ins.json_server import Mishaps, Said
from tests.stand_ins.searxng_server import TOO_MANY, SearXNGServer

FOUND = [WebResult(f"Dues {n}", f"https://example.org/{n}", "A yacht pays 14 pounds a night.") for n in range(10)]


@pytest.fixture
def web() -> Iterator[SearXNGServer]:
    with SearXNGServer(FOUND) as running:
        yield running


def bench(open_bench: Open, url: str, **settings: object) -> Workbench:
    return open_bench(web_providers="searxng", searxng_url=url, web_timeout=1.0, **settings)


def run(workbench: Workbench) -> Trace:
    return workbench.engine(searching(workbench)).run(QUESTION)


def answered_without_the_web(trace: Trace, outcome: WebOutcome, told: str) -> bool:
    """The run is whole, its answer stands on the documents, and the record says what became of the search."""
    assert broken_at(trace) == "" and trace.answer is not None and trace.answer.state is AnswerState.COMPLETE
    assert "14 pounds" in trace.answer.text and trace.web is not None and trace.web.passages == ()
    assert trace.web.outcome is outcome and told in trace.web.message
    assert step(trace, "search").summary == trace.web.message
    assert [attempt.outcome for attempt in trace.web.attempts] == [outcome]
    return True


def searched_again(workbench: Workbench, trace: Trace) -> bool:
    """The search is made anew on the same facts, and what it found goes in."""
    done = workbench.engine(searching(workbench)).resume(workbench.engine(searching(workbench)).adopt(trace))
    assert done.web is not None and done.web.outcome is WebOutcome.USED
    assert (done.passages, done.grades) == (trace.passages, trace.grades), "nothing else is done again"
    return all(passage.origin is Origin.WEB for passage in done.web.passages)


def test_away_at_the_start_is_told_and_asked_again_on_request(open_bench: Open, web: SearXNGServer) -> None:
    web.stop()
    workbench = bench(open_bench, web.url)
    trace = run(workbench)
    assert answered_without_the_web(trace, WebOutcome.FAILED, "SearXNG could not be reached at 127.0.0.1")
    assert workbench.engine(searching(workbench)).resume(trace) == trace, "a finished run asks nobody"
    web.start()
    assert searched_again(workbench, trace) and len(web.heard) == 1


MISHAPS = {
    "accepts and never answers": (Mishaps(delay_s=60.0), WebOutcome.TIMED_OUT, "did not answer within 1 s"),
    "an error": (Mishaps(said=Said(b"", 500)), WebOutcome.FAILED, "could not be asked (HTTP 500)"),
    "too many requests": (Mishaps(said=TOO_MANY), WebOutcome.RATE_LIMITED, "is limiting the rate of requests"),
}
"""tests/websearch has more."""


@pytest.mark.parametrize(("mishaps", "outcome", "told"), MISHAPS.values(), ids=MISHAPS)
def test_one_request_whatever_comes_of_it_and_another_when_it_is_back(
    open_bench: Open, web: SearXNGServer, mishaps: Mishaps, outcome: WebOutcome, told: str
) -> None:
    web.mishaps = mishaps
    workbench = bench(open_bench, web.url)
    trace = run(workbench)
    assert answered_without_the_web(trace, outcome, told) and len(web.heard) == 1
    web.mishaps = Mishaps()
    assert searched_again(workbench, trace) and len(web.heard) == 2, "a failure is not remembered for an answer"


def test_all_providers_away_are_each_asked_once_and_each_told(open_bench: Open, web: SearXNGServer) -> None:
    web.mishaps = Mishaps(said=TOO_MANY)
    with DuckDuckGoServer(FOUND) as duck:
        duck.status = 429
        workbench = open_bench(web_providers="duckduckgo,searxng", searxng_url=web.url, web_timeout=1.0)
        trace = run(workbench)
        assert trace.web is not None and trace.answer is not None and broken_at(trace) == ""
        assert "DuckDuckGo is limiting" in trace.web.message and "SearXNG is limiting" in trace.web.message
        assert (len(duck.queries), len(web.heard), len(trace.web.attempts)) == (1, 1, 2)
