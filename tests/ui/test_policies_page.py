"""The Policies page: every policy's verdict on one set of scores, of the last run or an example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.evaluators.policies import load_policies
from crag_core.trace.reroute import reroute
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import ask, choose, shown
from ui.policies.verdict_table import row_of
from ui.policies.verdicts import Verdict, judge_scores

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "What does a yacht of nine metres pay for a night?"
POLICIES = load_policies()[0]


def show_policies(app: AppTest) -> AppTest:
    return app.switch_page("pages/policies.py").run().run()


def rows(app: AppTest) -> dict[str, dict[str, str]]:
    """By the policy's title."""
    found = [row for table in app.table for row in table.value.to_dict("records")]
    return {row["Policy"].strip("*").replace("\\", ""): row for row in found}


def actions(app: AppTest) -> dict[str, str]:
    return {title: row["Verdict"].split(": ")[1].split(" ")[0].strip("]") for title, row in rows(app).items()}


def test_without_a_run_the_page_starts_with_an_example(start: Start) -> None:
    app = start("pages/policies.py")
    assert not app.exception
    assert actions(app) == {
        "Paper": "CORRECT",
        "Agentic": "CORRECT",
        "Heuristic": "AMBIGUOUS",
        "Rank-weighted": "AMBIGUOUS",
        "Signals": "AMBIGUOUS",
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


def test_a_row_says_why_what_follows_and_the_calls(start: Start) -> None:
    found = {title: list(row.values())[2:] for title, row in rows(start("pages/policies.py")).items()}
    assert found["Worst chunk"] == ["Worst chunk 0\\.25 \\< lower 0\\.30\\.", "discard · web", "5"]
    assert found["Agentic"][1:] == ["discard 1 chunk · keep", "1–6"], "a rule may spare the agent its grading"
    assert found["Heuristic"][1:] == ["keep · expand", "1"]
    assert "0\\.85" in found["Two signals"][0]


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
    verdict = judge(0.9)["paper"]
    hostile = replace(verdict, policy=replace(verdict.policy, title="<img src=x onerror=alert(1)>"))
    assert row_of(hostile)["Policy"].replace("\\<", "").count("<") == 0


def judge(*scores: float | None, found_by: str = "dense", cosine: float | None = 0.5) -> dict[str, Verdict]:
    numbered = list(enumerate(scores, start=1))
    passages = tuple(
        Passage(f"p{n}", "", "", found_by=(found_by,), scores=() if cosine is None else (("cosine", cosine),))
        for n, _ in numbered
    )
    grades = tuple(Grade(f"p{n}", score, cause="" if score is not None else "left empty") for n, score in numbered)
    signals = (("keyword_overlap", 0.6), ("coherence", 0.6), ("length_adequacy", 0.6), ("diversity", 0.6))
    signals = (*signals, ("class", 1.0))
    verdicts = judge_scores(passages, grades, signals, POLICIES.values())
    return {verdict.policy.name: verdict for verdict in verdicts}


def test_a_score_is_never_told_on_the_wrong_side_of_a_threshold() -> None:
    for score, told in ((0.7, "0.70 ≥ upper 0.70"), (0.6999, "0.6999"), (0.4321, "0.43")):
        assert told in row_of(judge(score)["worst-chunk"])["Why"].replace("\\", "")
