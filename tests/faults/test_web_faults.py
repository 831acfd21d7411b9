"""A web provider that is away: the documents answer, the record says why. tests/websearch has its other faults."""

from __future__ import annotations

from crag_core.base.types.answers import AnswerState
from crag_core.base.types.passages import Origin
from crag_core.base.types.web import WebOutcome
from tests.faults.conftest import Open
from tests.faults.parts import QUESTION, broken_at, searching, step
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.searxng_server import SearXNGServer

FOUND = [WebResult(f"Dues {n}", f"https://example.org/{n}", "A yacht pays 14 pounds a night.") for n in range(10)]


def test_away_at_the_start_is_told_and_asked_again_on_request(open_bench: Open) -> None:
    with SearXNGServer(FOUND) as web:
        web.stop()
        workbench = open_bench(web_providers="searxng", searxng_url=web.url, web_timeout=1.0)
        engine = workbench.engine(searching(workbench))
        trace = engine.run(QUESTION)
        assert broken_at(trace) == "" and trace.answer is not None and trace.answer.state is AnswerState.COMPLETE
        assert "14 pounds" in trace.answer.text and trace.web is not None and trace.web.passages == ()
        assert "SearXNG could not be reached at 127.0.0.1" in trace.web.message
        assert step(trace, "search").summary == trace.web.message
        assert [attempt.outcome for attempt in trace.web.attempts] == [trace.web.outcome] == [WebOutcome.FAILED]
        assert engine.resume(trace) == trace, "a finished run asks nobody"
        web.start()
        done = engine.resume(engine.adopt(trace))
        assert done.web is not None and done.web.outcome is WebOutcome.USED and len(web.heard) == 1
        assert (done.passages, done.grades) == (trace.passages, trace.grades), "nothing else is done again"
        assert all(passage.origin is Origin.WEB for passage in done.web.passages)
