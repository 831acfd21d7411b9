"""The Policies page: every policy's verdict on one set of scores, of the last run or an example."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.text.display import sentence
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.evaluators.policies import load_policies
from crag_core.trace.reroute import reroute
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import ask, choose, shown
from ui.policies.example_scores import EXAMPLES, read_rows
from ui.policies.verdict_table import table_html
from ui.policies.verdicts import Verdict, judge_scores, scales

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "What does a yacht of nine metres pay for a night?"
POLICIES = load_policies()[0]


def show_policies(app: AppTest) -> AppTest:
    return app.switch_page("pages/policies.py").run().run()


def rows(app: AppTest) -> dict[str, str]:
    """The words of each row of the table, by the policy's title."""
    page = " ".join(str(element.proto.body) for element in app.get("html"))
    found = re.findall(r"<tr><th scope=.row.>(.*?)</th>(.*?)</tr>", page)
    return {html.unescape(title): words(row) for title, row in found}


def words(row: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", row)).split())


def actions(app: AppTest) -> dict[str, str]:
    return {title: row.split()[0] for title, row in rows(app).items()}


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


def test_a_row_says_the_score_its_thresholds_what_follows_and_the_calls(start: Start) -> None:
    found = rows(start("pages/policies.py"))
    assert found["Worst chunk"] == "INCORRECT worst chunk 0.25 0.30 0.70 discard web 5"
    assert found["Agentic"].startswith("CORRECT Generate kept mean 0.70 0.30 0.70 discard 1 keep 1–6")
    assert found["Heuristic"] == "AMBIGUOUS Partial signals 0.73 0.50 0.75 keep expand 1"
    assert found["Two signals"].startswith("CORRECT answer 0.85 0.75 subject 0.95 0.68")


def test_details_of_a_policy_are_shown_when_it_is_chosen(start: Start) -> None:
    app = start("pages/policies.py")
    assert "Source:" not in shown(app)
    assert "Rank-weighted" in app.selectbox(key="policies_details").options, "options are text, not Markdown"
    app.selectbox(key="policies_details").select("rank-weighted").run()
    text = shown(app)
    assert not app.exception
    assert "discard 1 chunk: score 0.25" in text
    assert "web: only 2 of at least 3 chunks remain, up to 5 results" in text
    assert "if doubtful: show nearest" in text
    assert "Confidence 0.67. LLM calls: 2." in text and "Source: " in text
    assert "Not in this run" not in text, "there is no run"
    app.selectbox(key="policies_details").select("agentic").run()
    assert "LLM calls: 1 to 6" in shown(app), "a rule may spare the agent its grading"


def test_signals_of_the_whole_set_move_only_the_policies_that_read_them(start: Start) -> None:
    app = start("pages/policies.py")
    assert not any(slider.key == "policies_coherence" for slider in app.slider), "folded away"
    before = rows(app)
    app.toggle(key="policies_edit").set_value(True).run()
    assert rows(app) == before
    app.slider(key="policies_coherence").set_value(1.0).run()
    moved = {title for title, row in rows(app).items() if row != before[title]}
    assert moved == {"Heuristic"} and rows(app)["Heuristic"].startswith("CORRECT Relevant")
    app.slider(key="policies_agreement").set_value(0.0).run()
    app.slider(key="policies_keyword_coverage").set_value(0.0).run()
    moved = {title for title, row in rows(app).items() if row != before[title]}
    assert moved == {"Heuristic", "Signals"} and actions(app)["Signals"] == "INCORRECT"


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
    app.selectbox(key="policies_details").select("paper").run()
    assert "Not in this run: nothing" in shown(app)


# --- scales and rows ------------------------------------------------------------------------------------------------


def test_two_signals_have_a_scale_each_with_its_own_threshold() -> None:
    passages, grades = read_rows(list(EXAMPLES["Mixed"]))
    verdict = next(
        one for one in judge_scores(passages, grades, (), POLICIES.values()) if one.policy.name == "two-signal"
    )
    answering, topical = scales(verdict)
    assert (answering.score, answering.lower, answering.upper) == (0.85, None, verdict.policy.upper)
    assert (topical.score, topical.lower, topical.upper) == (0.95, verdict.policy.lower, None)
    assert answering.chunks == (0.85, 0.15, 0.05) and topical.chunks == (0.95, 0.85, 0.45)


def test_what_was_not_compared_is_told_by_its_reason_alone() -> None:
    for verdict in (judge()["paper"], judge(None)["paper"], judge(0.1, 0.1)["agentic"]):
        assert scales(verdict) == ()
        reason = sentence(verdict.decision.reason)
        assert reason in words(table_html([verdict]))


def test_names_in_a_policy_file_are_text() -> None:
    verdict = judge(0.9)["paper"]
    hostile = replace(verdict, policy=replace(verdict.policy, title="<img src=x onerror=alert(1)>"))
    assert "<img" not in table_html([hostile])


# --- scores that the grid may hold ----------------------------------------------------------------------------------


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


def test_of_a_signal_left_empty_the_score_takes_the_place() -> None:
    _, grades = read_rows(
        [
            {"score": 0.5, "answering": 0.1, "topical": 0.9, "found by": "dense"},
            {"score": 0.5, "answering": None, "topical": 0.9},
            {"score": 0.5, "answering": None, "topical": None},
            {"score": None, "answering": 0.1, "topical": 0.9},
        ]
    )
    assert [grade.two_signals for grade in grades] == [(0.1, 0.9), (0.5, 0.9), None, None]


def test_signals_are_made_of_no_single_chunk() -> None:
    assert [one.chunks for one in scales(judge(0.9, 0.4)["heuristic"])] == [()]
    assert [one.chunks for one in scales(judge(0.9, None)["paper"])] == [(0.9,)], "one was not graded"


def test_a_score_is_never_told_on_the_wrong_side_of_a_threshold() -> None:
    assert "worst chunk 0.70 0.30 0.70" in words(table_html([judge(0.7)["worst-chunk"]]))
    assert "worst chunk 0.6999 0.30 0.70" in words(table_html([judge(0.6999)["worst-chunk"]]))
    assert "worst chunk 0.43 0.30 0.70" in words(table_html([judge(0.4321)["worst-chunk"]]))
