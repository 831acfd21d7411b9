"""The Policies page: every policy's verdict on one set of scores, of the last run or a demo."""

from __future__ import annotations

from dataclasses import replace

from streamlit.testing.v1 import AppTest

from crag_core.evaluators.policies import load_policies
from crag_core.trace.reroute import reroute
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import Start, ask, choose, shown
from ui.policies import judge_run, row_of
from ui.session.demos import demos

PRICE = "What does a yacht of nine metres pay for a night?"
POLICIES = load_policies()[0]
DEMO = demos()[0].trace


def show_policies(app: AppTest) -> AppTest:
    return app.switch_page("pages/policies.py").run().run()


def rows(app: AppTest) -> dict[str, dict[str, str]]:
    """By the policy's title."""
    found = [row for table in app.table for row in table.value.to_dict("records")]
    return {row["Policy"].strip("*").replace("\\", ""): row for row in found}


def actions(app: AppTest) -> dict[str, str]:
    return {title: row["Verdict"].split(": ")[1].split(" ")[0].strip("]") for title, row in rows(app).items()}


def test_without_a_run_the_page_starts_with_a_demo(start: Start) -> None:
    app = start("pages/policies.py")
    assert not app.exception
    assert f"{DEMO.question}**" in shown(app)
    assert actions(app) == {
        "Paper": "CORRECT",
        "Agentic": "AMBIGUOUS",
        "Heuristic": "AMBIGUOUS",
        "Rank-weighted": "AMBIGUOUS",
        "Signals": "CORRECT",
        "Two signals": "CORRECT",
        "Worst chunk": "INCORRECT",
        "Sufficient context": "CORRECT",
        "Self-Route": "CORRECT",
        "Adaptive-RAG": "CORRECT",
        "Astute RAG": "CORRECT",
    }
    (newer,) = app.expander
    assert newer.label.startswith("**Newer papers** ") and "4 CORRECT" in newer.label and not newer.proto.expanded
    assert "3 CORRECT" in shown(app) and "3 AMBIGUOUS" in shown(app) and "1 INCORRECT" in shown(app)


def test_a_row_says_why_what_follows_the_calls_and_what_is_missing(start: Start) -> None:
    found = {title: list(row.values())[2:] for title, row in rows(start("pages/policies.py")).items()}
    assert found["Worst chunk"][1:] == ["discard · web", "2", "web results"]
    assert "lower 0\\.52" in found["Worst chunk"][0]
    assert found["Agentic"][2:] == ["1–3", "another round of retrieval"]


def test_the_last_run_is_shown_under_every_policy_without_a_call(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = ask(choose(start(OLLAMA_HOST=server.url), policy="worst-chunk"), PRICE)
        calls = server.chat_calls
        show_policies(app)
        assert server.chat_calls == calls
    trace = app.session_state["trace"]
    assert f"{PRICE}** :gray[3 chunks, language model]" in shown(app)
    suited = [
        one.with_thresholds_for(trace.settings.evaluator, trace.settings.strip_evaluator) for one in POLICIES.values()
    ]
    assert actions(app) == {policy.title: reroute(trace, policy).decision.action for policy in suited}
    assert rows(app)["Paper"]["Not in this run"] == "–"


def test_names_in_a_policy_file_are_text() -> None:
    verdict = judge_run(DEMO, POLICIES.values())[0]
    hostile = replace(verdict, policy=replace(verdict.policy, title="<img src=x onerror=alert(1)>"))
    assert row_of(hostile)["Policy"].replace("\\<", "").count("<") == 0
