"""Policies that retrieve more than once: every iteration is shown, and so is what each retrieval brought."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.judge import heard, judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import ask, choose, header, put_thresholds, settle, shown

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "What does a yacht of nine metres pay for a night?"
CHESS = "Who won the chess championship of 1972?"
STANDING = "Who may stand at the berth of a longer yacht?"  # its words are in one document, its meaning in another


def decision_path(app: AppTest) -> list[str]:
    """The lines of the card "Looked again"; empty without it."""
    told = [str(element.value) for element in app.markdown if str(element.value).startswith("**1** · ")]
    return told[0].replace("\\", "").split("\n\n") if told else []


def passage_notes(app: AppTest) -> list[str]:
    notes = [str(caption.value).replace("\\", "") for caption in app.caption]
    return [note.removeprefix(":material/replay: ") for note in notes if note.startswith(":material/replay:")]


def test_one_look_needs_no_card(start: Start) -> None:
    app = ask(start(), PRICE)
    assert decision_path(app) == [] and "Looked again" not in shown(app)
    assert passage_notes(app) == []


def test_every_iteration_is_shown_with_query_finds_and_verdict(start: Start) -> None:
    app = ask(choose(start(), policy="agentic"), CHESS)
    first, second, third = decision_path(app)
    assert first.startswith("**1** · first retrieval, meaning and words together · 3 chunks → :red[")
    assert f"**2** · keyword: “{CHESS}”, the question, by its words alone, keyword · 0 chunks →" in second
    assert second.endswith("nothing was retrieved")
    assert "**3** · rewritten: “won chess championship 1972”" in third and "by meaning, dense · 3 chunks" in third
    assert "INCORRECT · Re-retrieve" in header(app)


@pytest.mark.parametrize(("most", "lines"), [("1", 0), ("2", 2)])
def test_number_of_iterations_comes_from_the_environment(start: Start, most: str, lines: int) -> None:
    app = ask(choose(start(KB_AGENT_MAX_ITERATIONS=most), policy="agentic"), CHESS)
    assert len(decision_path(app)) == lines


@pytest.mark.parametrize(("most", "rule"), [("2", "few_context"), ("0", None)])
def test_rule_for_few_passages_comes_from_the_environment(start: Start, most: str, rule: str | None) -> None:
    app = choose(start(CRAG_TOP_K="2", KB_AGENT_AUTO_APPROVE_MAX_ITEMS=most), policy="agentic")
    ask(app, PRICE)
    assert app.session_state["trace"].decision.rule == rule
    assert ("Rule few_context: 2 chunks" in shown(app)) is (rule is not None)


@pytest.mark.usefixtures("unfolded")
def test_expansion_shows_its_terms_and_where_they_come_from(start: Start) -> None:
    app = choose(start(CRAG_TOP_K="1"), policy="heuristic")
    put_thresholds(app, (0.0, 1.0)).run()
    ask(app, PRICE)
    first, expanded = decision_path(app)
    assert "1 chunk → :orange[" in first
    assert f"**+** · expand: “{PRICE} payment cost pounds”" in expanded
    assert "payment (synonym of pay)" in expanded and "pounds (stands beside" in expanded
    assert expanded.endswith("both retrievals fused by rank: 3 chunks")
    assert passage_notes(app) == ["found by a later retrieval: expand"] * 2


@pytest.mark.usefixtures("unfolded")
def test_passages_of_a_later_retrieval_are_marked_and_passed_over_ones_too(start: Start) -> None:
    app = choose(start(CRAG_TOP_K="1", KB_AGENT_AUTO_APPROVE_MAX_ITEMS="0"), policy="agentic")
    put_thresholds(app, (0.9, 0.95)).run()
    ask(app, STANDING)
    trace = app.session_state["trace"]
    assert [passage.source for passage in trace.all_passages] == ["berths.csv", "crane.txt"]
    assert passage_notes(app) == ["found by a later retrieval: keyword; looked at in an earlier iteration only"]


def test_another_policy_leaves_later_retrievals_in_the_record_and_says_so(start: Start) -> None:
    app = choose(start(CRAG_TOP_K="1"), policy="heuristic")
    put_thresholds(app, (0.0, 1.0)).run()
    ask(app, PRICE)
    kept = app.session_state["trace"]
    choose(app, policy="paper")
    assert app.session_state["trace"] is kept
    assert decision_path(app) == [] and passage_notes(app) == []
    assert "2 more chunks in the record, from retrievals this policy does not use." in shown(app)


def test_round_that_a_slider_asks_for_is_offered_and_then_made_without_grading_again(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging(0.8))) as server:
        app = ask(choose(start(policy="", OLLAMA_HOST=server.url), policy="agentic"), PRICE)
        assert decision_path(app) == [] and heard(server) == {"list": 1, "answer": 1}
        put_thresholds(app, (0.3, 0.9)).run()
        assert "AMBIGUOUS · Refine" in header(app)
        assert heard(server) == {"list": 1, "answer": 1}, "moving a slider asks nobody"
        assert "another round of retrieval" in shown(app)
        app.button(key="ask_carry_out").click().run()
        settle(app)
        assert len(decision_path(app)) == 3
        assert heard(server) == {"list": 1, "keywords": 2, "answer": 2}, "all chunks were graded before"


def test_record_lists_what_was_done_with_its_query(start: Start) -> None:
    app = ask(choose(start(), policy="agentic"), CHESS)
    table = app.table[0]
    rows = [{name: str(value).replace("\\", "") for name, value in row.items()} for _, row in table.value.iterrows()]
    kinds = [row["Correction"].strip("*") for row in rows]
    assert kinds == [correction.kind.value for correction in app.session_state["trace"].corrections]
    assert kinds.count("re_retrieve") == 2 and kinds[-1] == "generate"
    again = [row for row in rows if row["Correction"] == "**re_retrieve**"]
    assert [row["Query"] for row in again] == [CHESS, "won chess championship 1972"]
    assert "iteration 2 of 3" in again[0]["Why"]


def test_record_has_the_summary_of_the_run(start: Start) -> None:
    from crag_core.base.serialization import to_plain
    from crag_core.trace.summary import summarize

    app = ask(choose(start(), policy="agentic"), CHESS)
    (summary,) = (frame.value for frame in app.dataframe if list(frame.value.columns) == ["field", "value"])
    told = dict(zip(summary["field"], summary["value"], strict=True))
    assert list(told) == list(to_plain(summarize(app.session_state["trace"])))
    assert (told["decision"], told["action"], told["iterations"]) == ("RE_RETRIEVE", "INCORRECT", "3")
    assert (told["strategy"], told["rule"], told["score"]) == ("re_retrieval", "–", "–")


def test_broken_run_has_no_summary(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url), evaluator="llm")
        server.faults.status = 500
        ask(app, PRICE)
    assert not app.exception and not app.table
    assert "The run broke off at" in "".join(str(error.title) for error in app.error)
