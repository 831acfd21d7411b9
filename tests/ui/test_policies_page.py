"""The Policies page: seven cards of one set of scores, from the last run or made up by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types import Grade, Passage
from crag_core.decision.policy import Policy
from crag_core.evaluators.policies import load_policies
from crag_core.trace.reroute import reroute
from crag_core.view.verdict_lines import is_one_for_both
from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import ask, choose, put_thresholds, shown
from ui.policies import Verdict, judge_scores, read_rows

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "What does a yacht of nine metres pay for a night?"
CHESS = "Who won the chess championship of 1972?"
POLICIES = load_policies()[0]


def show_policies(app: AppTest) -> AppTest:
    return app.switch_page("pages/policies.py").run().run()


def cards(app: AppTest) -> dict[str, str]:
    """The verdict on each policy's card, by the policy's title."""
    titles = [str(element.value).strip("*").replace("\\", "") for element in app.markdown]
    known = {policy.title for policy in POLICIES.values()}
    verdicts = [str(element.value).replace("\\", "") for element in app.subheader]
    return dict(zip([title for title in titles if title in known], verdicts, strict=True))


def test_without_a_run_the_page_starts_with_scores_by_hand(start: Start) -> None:
    app = start("pages/policies.py")
    assert not app.exception
    assert {title: verdict.split()[1].rstrip("]") for title, verdict in cards(app).items()} == {
        "Paper": "CORRECT",
        "Agentic": "CORRECT",
        "Heuristic": "AMBIGUOUS",
        "Rank-weighted": "AMBIGUOUS",
        "Signals": "AMBIGUOUS",
        "Two signals": "CORRECT",
        "Worst chunk": "INCORRECT",
    }
    text = shown(app)
    assert "Worst chunk 0.25 < lower 0.30." in text and "Rank-weighted mean 0.67 between" in text
    assert "confidence 0.75" in text, "of INCORRECT, one less the score"


def test_cards_say_what_each_policy_would_do_and_what_that_costs(start: Start) -> None:
    text = shown(start("pages/policies.py"))
    assert "discard 1: score 0.25 < 0.30" in text
    assert "web search: only 2 of at least 3 chunks remain, up to 5 results" in text
    assert "expand: partly relevant: retrieve again with an expanded question" in text
    assert "1 to 6 model calls with a language model" in text, "a rule may spare the agent its grading"
    assert "not in the record" not in text, "there is no record"
    assert text.count("without web evidence: show nearest") == 3, "of those that are AMBIGUOUS"


def test_measures_of_the_whole_set_move_only_the_policies_that_read_them(start: Start) -> None:
    app = start("pages/policies.py")
    before = cards(app)
    app.slider(key="policies_coherence").set_value(1.0).run()
    moved = {title for title, verdict in cards(app).items() if verdict != before[title]}
    assert moved == {"Heuristic"} and "CORRECT · Relevant" in cards(app)["Heuristic"]
    app.slider(key="policies_agreement").set_value(0.0).run()
    app.slider(key="policies_keyword_coverage").set_value(0.0).run()
    moved = {title for title, verdict in cards(app).items() if verdict != before[title]}
    assert moved == {"Heuristic", "Signals"} and "INCORRECT" in cards(app)["Signals"]


def test_the_last_run_is_shown_under_every_policy_without_a_call(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = ask(choose(start(OLLAMA_HOST=server.url), policy="worst-chunk"), PRICE)
        calls = server.chat_calls
        show_policies(app)
        assert server.chat_calls == calls
    trace = app.session_state["trace"]
    text = shown(app)
    assert f"“{PRICE}” · 3 chunks, graded by language model." in text
    suited = [one.suited_to(trace.settings.evaluator, trace.settings.strip_evaluator) for one in POLICIES.values()]
    actions = {policy.title: reroute(trace, policy).decision.action for policy in suited}
    assert {title: verdict.split()[1].rstrip("]") for title, verdict in cards(app).items()} == actions
    assert "not in the record: nothing" in text


def test_what_the_last_run_lacks_is_told(start: Start) -> None:
    app = show_policies(ask(start(), CHESS))
    assert "INCORRECT · Re-retrieve" in cards(app)["Agentic"]
    assert "not in the record: another round of retrieval" in shown(app)


def test_sliders_of_the_sidebar_leave_the_cards_alone(start: Start) -> None:
    app = show_policies(ask(start(), PRICE))
    before = cards(app)
    put_thresholds(app, (0.98, 0.99)).run()
    assert cards(app) == before, "each policy starts with the thresholds that suit it"


def test_one_may_change_from_the_last_run_to_scores_by_hand_and_back(start: Start) -> None:
    app = show_policies(ask(start(), CHESS))
    of_run = cards(app)
    app.segmented_control(key="policies_source").set_value("Scores by hand").run()
    assert not app.exception and cards(app) != of_run
    app.segmented_control(key="policies_source").set_value("The last run").run()
    assert cards(app) == of_run


def test_the_last_run_without_a_run_says_where_to_ask(start: Start) -> None:
    app = start("pages/policies.py")
    app.segmented_control(key="policies_source").set_value("The last run").run()
    assert "Ask something on the Ask page first" in shown(app)
    assert len(app.subheader) == 0


def test_run_that_broke_off_before_its_passages_has_no_cards(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    from crag_core.base.errors import StoreUnavailable
    from crag_core.retrieval.hybrid import HybridRetriever

    def fail(*_: object) -> None:
        raise StoreUnavailable("The index cannot be read.")

    app = start()
    monkeypatch.setattr(HybridRetriever, "retrieve", fail)
    show_policies(ask(app, PRICE))
    assert not app.exception
    assert "Ask something on the Ask page first" in shown(app)


def test_two_signals_say_both_numbers_each_against_its_own_threshold(start: Start) -> None:
    text = shown(start("pages/policies.py"))
    policy = POLICIES["two-signal"]
    assert f"**0.850** :gray[answering, against upper {policy.upper:g}]" in text
    assert f"**0.950** :gray[topical, against lower {policy.lower:g}]" in text
    assert f"Best answering 0.85 ≥ upper {policy.upper:.2f}." in text
    assert "One score for both signals" not in text


# --- scores that the grid may hold ----------------------------------------------------------------------------------


def judge(*scores: float | None, found_by: str = "dense", cosine: float | None = 0.5) -> dict[str, Verdict]:
    numbered = list(enumerate(scores, start=1))
    passages = tuple(
        Passage(f"p{n}", "", "", found_by=(found_by,), scores=() if cosine is None else (("cosine", cosine),))
        for n, _ in numbered
    )
    grades = tuple(Grade(f"p{n}", score, cause="" if score is not None else "left empty") for n, score in numbered)
    signals = (("keyword_overlap", 0.6), ("coherence", 0.6), ("length_adequacy", 0.6), ("diversity", 0.6))
    verdicts = judge_scores(passages, grades, signals, POLICIES.values())
    return {verdict.policy.name: verdict for verdict in verdicts}


def test_no_rows_are_nothing_retrieved_for_every_policy() -> None:
    reasons = {verdict.decision.reason for verdict in judge().values()}
    assert reasons == {"nothing was retrieved"}


def test_empty_score_is_a_passage_that_could_not_be_graded() -> None:
    verdicts = judge(0.9, None, 0.9)
    assert verdicts["paper"].decision.score == 0.9, "it does not count"
    assert verdicts["worst-chunk"].decision.score == 0.5, "it counts as 0.5"
    assert {verdict.decision.reason for name, verdict in judge(None, None, None).items() if reads_passages(name)} == {
        "no chunk could be graded"
    }


def reads_passages(name: str) -> bool:
    policy: Policy = POLICIES[name]
    return policy.aggregation.value != "signals"


def test_rules_of_the_agent_read_who_found_a_passage_and_its_cosine() -> None:
    assert judge(0.1, 0.1, 0.1)["agentic"].decision.rule is None
    assert judge(0.1, 0.1, 0.1, found_by="read_file")["agentic"].decision.rule == "read_file"
    assert judge(0.1, 0.1, 0.1, cosine=0.8)["agentic"].decision.rule == "high_vector_score"
    assert judge(0.1, 0.1, 0.1, cosine=None)["agentic"].decision.rule is None
    assert judge(0.1, 0.1)["agentic"].decision.rule == "few_context"


def test_every_policy_is_judged_with_the_evaluator_it_was_described_with() -> None:
    assert {name: verdict.judge.name for name, verdict in judge(0.5).items()} == {
        name: policy.evaluator for name, policy in POLICIES.items()
    }


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


def test_without_signals_two_signals_decide_as_paper_and_say_so() -> None:
    verdicts = judge(0.9, 0.1)
    ours, paper = verdicts["two-signal"], verdicts["paper"]
    assert ours.decision.topical is None
    assert is_one_for_both(ours.policy, ours.decision) and not is_one_for_both(paper.policy, paper.decision)
    assert not is_one_for_both(ours.policy, judge(None)["two-signal"].decision), "nothing was compared"
