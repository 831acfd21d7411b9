"""A model server that is away or dies: what was done stays, and each call is made once."""

from __future__ import annotations

import pytest

from crag_core.app.workbench import Choice
from crag_core.base.prompts.messages import shipped
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.evaluators.policies import suit
from crag_core.pipeline.run import Run, WebMode
from crag_core.trace.trace import Trace
from tests.faults.conftest import Open, Start
from tests.faults.parts import QUESTION, WRITER, at, broken_at, judged
from tests.judge import ANSWER, heard, judging
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.searxng_server import SearXNGServer
from tests.ui.conftest import ask, choose, press, shown

PROMPTS = shipped()

FOUND = [WebResult("Dues", "https://example.org/dues", "A yacht of nine metres pays 14 pounds for a night.")]
WHOLE = {"judge": 3, "answer": 1}
"""What a run that is CORRECT asks of a model, each once."""


def kept(trace: Trace) -> tuple[int, int]:
    """(passages, those with a score)."""
    return len(trace.passages or ()), sum(grade.score is not None for grade in trace.grades or ())


def test_away_at_the_start_breaks_off_at_the_grades_and_goes_on_when_it_is_back(
    open_bench: Open, server: OllamaServer
) -> None:
    server.stop()
    workbench = open_bench(ollama_host=server.url)
    pipeline = workbench.engine(judged(workbench))
    broken = pipeline.run(QUESTION)
    workbench.history.save(broken)
    assert broken_at(broken) == "grade" and kept(broken) == (3, 0)
    assert broken.failure is not None
    assert broken.failure.summary.startswith(f"Ollama at {server.url} does not answer or went away.")
    assert "Start it with: ollama serve" in str(broken.failure.summary) + broken.failure.hint
    assert workbench.history.load(broken.id) == broken

    server.start()
    done = pipeline.resume(broken)
    assert broken_at(done) == "" and done.answer is not None and done.answer.text == ANSWER
    assert heard(server) == WHOLE


@pytest.mark.parametrize("name", ["grade", "extract", "rewrite", "answer"])
def test_killed_at_any_step_keeps_the_steps_before_it_and_asks_nothing_twice(
    open_bench: Open, server: OllamaServer, name: str
) -> None:
    server.engine = ScriptedModel(judging(0.5))
    with SearXNGServer(FOUND) as web:
        workbench = open_bench(ollama_host=server.url, web_providers="searxng", searxng_url=web.url)
        pipeline = workbench.engine(judged(workbench, WebMode.AUTO))
        broken = pipeline.run(QUESTION, at(name, server.stop))
        before = heard(server)
        assert broken_at(broken), "it cannot be answered without the model"
        assert broken.passages and (name == "grade" or broken.decision is not None)
        assert name == "grade" or kept(broken) == (3, 3)
        workbench.history.save(broken)
        server.start()
        done = pipeline.resume(workbench.history.load(broken.id) or broken)
        assert done.answer is not None and done.answer.text == ANSWER and broken_at(done) == ""
        assert done.decision is not None and done.decision.action is Action.AMBIGUOUS
        asked = heard(server)
        assert (asked["judge"], asked["extract"], asked["answer"]) == (3, 3, 1)
        assert asked["rewrite"] <= 1 and len(web.heard) == 1
        assert all(asked[kind] == count for kind, count in before.items() if kind in ("judge", "extract"))


def test_killed_in_mid_answer_keeps_its_first_words(open_bench: Open, server: OllamaServer) -> None:
    workbench = open_bench(ollama_host=server.url)
    pipeline = workbench.engine(judged(workbench))
    cut = at("answer", lambda: setattr(server.faults, "die_after", 2))
    broken = pipeline.run(QUESTION, cut)
    assert broken.answer is not None and broken.answer.state is AnswerState.FAILED
    assert broken.answer.text and ANSWER.startswith(broken.answer.text)
    assert "does not answer or went away" in broken.answer.message
    server.faults.clear()
    done = pipeline.resume(broken)
    assert done.answer is not None and done.answer.text == ANSWER
    assert heard(server) == {"judge": 3, "answer": 2}, "the answer alone is written anew"


def test_web_results_that_the_judge_could_not_grade_are_graded_when_it_is_back(
    open_bench: Open, server: OllamaServer
) -> None:
    """The policy `paper` has web text judged too: the model dies between the search and that."""
    server.engine = ScriptedModel(judging(0.5))
    with SearXNGServer(FOUND) as web:
        workbench = open_bench(ollama_host=server.url, web_providers="searxng", searxng_url=web.url)
        policy = suit(workbench.policies["paper"], "llm").with_thresholds(0.3, 0.7)
        pipeline = workbench.engine(Choice(policy, "llm", WRITER, WebMode.AUTO))
        broken = pipeline.run(QUESTION, at("grade web", server.stop))
        server.start()
        done = pipeline.resume(broken, Run())
        assert [grade.score for grade in done.web_grades or ()] == [0.5] and len(web.heard) == 1


def test_the_page_shows_what_was_done_and_goes_on_from_there(start: Start, server: OllamaServer) -> None:
    app = start("worst-chunk", OLLAMA_HOST=server.url)
    choose(app, evaluator="llm")
    assert app.selectbox(key="model").value == WRITER
    server.faults.die_after = 1
    ask(app, QUESTION)
    told = shown(app)
    assert not app.exception and "The run broke off at “grade”" in str(app.error[0].proto)
    assert f"Ollama at `{server.url}` does not answer or went away." in told
    assert "What was done is kept." in told
    app.session_state["record_drawer"] = True
    assert "3 chunks from 3 documents" in shown(app.run())
    server.faults.clear()
    before = heard(server)["judge"]
    press(app, "Continue from here")
    assert not app.exception and ANSWER.partition(" [")[0] in shown(app)
    assert heard(server) == {"judge": before + 3, "answer": 1} and before == 3
