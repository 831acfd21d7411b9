"""Many sessions at once on one process: nobody sees another's run, nothing is lost, the line is empty after."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.browser import crowd
from tests.browser.conftest import QUICK, find_port, serve
from tests.matrix import mostly
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer

pytestmark = pytest.mark.browser

ROUNDS = 2
ALLOWED = 1.5
"""Times the memory that one visitor leaves behind; 25 sessions with their runs take a few megabytes each."""


@pytest.mark.parametrize("sessions", mostly(4, 25))
def test_a_crowd_with_a_slow_model_that_stops_reloads_and_leaves_loses_nothing(tmp_path: Path, sessions: int) -> None:
    """Each way to end a run is there, and an answer without the model; two run at a time, the others wait."""
    port = find_port()
    reply = "It leaves at nine [1]."
    with OllamaServer(ScriptedModel(lambda messages: reply, delay_s=0.05)) as server:
        settings = {"OLLAMA_HOST": server.url, "CRAG_MODEL": f"ollama/{MODEL}", "CRAG_METRICS_PORT": str(port)}
        with serve(tmp_path, program=QUICK, **settings) as url:
            process = crowd.process_at(url)
            alone = asyncio.run(crowd.visit(url, 1, 1, has_model=True))
            before = crowd.size_of(process)
            tally = asyncio.run(crowd.visit(url, sessions, ROUNDS, is_mixed=True, has_model=True, first=1))
            assert crowd.wait_until_idle(port), "somebody still waits in line"
            after = crowd.size_of(process)
            later = asyncio.run(crowd.visit(url, 1, 1, first=100))
        tally.asked += alone.asked + later.asked
        tally.errors += alone.errors + later.errors
        assert crowd.problems(tally, tmp_path) == []
        assert len(tally.asked) == sessions * ROUNDS + 2
        assert {asked.ending for asked in tally.asked} == set(crowd.ENDINGS)
        assert max(tally.places) > 0, "the line was seen, with places"
        assert after.now < ALLOWED * before.now, (before, after)
        assert server.active == 0 and server.chat_calls > 0
