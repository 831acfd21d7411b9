"""The sidebar: presets, policy files of one's own and broken ones, and what it says of what does not work."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.evaluators.policies import known_card
from crag_core.observability import audit_log
from tests.builders import policy_file
from tests.judge import judging
from tests.policy_files import PAPER, paper_with, use_folder
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import ask, choose, header, press, shown
from tests.ui.drawn import parts, popovers
from ui.shell.sidebar import cutoff_source

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "How many pounds does a yacht of ten metres pay a night?"


# --- the cost of a question -----------------------------------------------------------------------------------------


def test_budget_is_told_by_route_and_holds(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url, CRAG_TOP_K="3"), policy="worst-chunk")
        assert "LLM calls: :green[Correct] 4 · :orange[Ambiguous] 7 · :red[Incorrect]" in shown(app)
        ask(app, PRICE)
        assert "CORRECT" in header(app) and server.chat_calls == 4
    assert app.session_state["trace"].usage.calls == 4


def test_budget_follows_evaluator_writer_web_and_policy(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = start(OLLAMA_HOST=server.url, CRAG_TOP_K="6")
        assert ":green[Correct] 1 · :orange[Ambiguous] 1" in shown(app), "the writer's"
        choose(app, evaluator="llm-list")
        assert ":green[Correct] 2 · :orange[Ambiguous] 2" in shown(app)
        app.segmented_control(key="web").set_value("auto").run()
        assert ":green[Correct] 2 · :orange[Ambiguous] 4" in shown(app), "a query to write, and results to grade"
        choose(app, policy="agentic")
        assert ":green[Generate] 1–" in shown(app), "a rule may spare the grading"
        choose(app, evaluator="embedding", model="extractive")
        assert ":material/receipt: 0 LLM calls" in shown(app)


# --- presets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "label", "thresholds", "cutoff"),
    [
        ("worst-chunk", "Conservative: 0.40 and 0.80", (0.4, 0.8), None),
        ("worst-chunk", "Aggressive: 0.20 and 0.60", (0.2, 0.6), None),
        ("paper", "Popqa: 0.005 and 0.795", (0.005, 0.795), 0.25),
        ("paper", "Pubhealth: 0.045 and 0.75", (0.045, 0.75), 0.25),
        ("paper", "Arc challenge: 0.045 and 0.75", (0.045, 0.75), 0.25),
        ("paper", "Biography: 0.045 and 0.975", (0.045, 0.975), 0.25),
    ],
)
def test_preset_moves_the_sliders(
    start: Start, policy: str, label: str, thresholds: tuple[float, float], cutoff: float | None
) -> None:
    app = choose(start(), policy=policy)
    if policy == "worst-chunk":  # whose presets are for scores of the evaluator that it was described with
        choose(app, evaluator="llm")
    before, start_from = app.slider(key="strips").value, app.slider(key="thresholds").value
    press(app, label)
    assert not app.exception
    assert app.slider(key="thresholds").value == thresholds
    assert app.slider(key="strips").value == (before if cutoff is None else cutoff)
    press(app, "Back to the defaults")
    assert app.slider(key="thresholds").value == start_from, "those of the evaluator"


@pytest.mark.usefixtures("unfolded")
def test_the_limit_of_sentences_is_seen_moved_and_decides_again_at_once(start: Start) -> None:
    app = ask(start(), PRICE)
    trace = app.session_state["trace"]
    slider = app.select_slider(key="sentences")
    assert slider.label == "Sentences kept, at most" and slider.value == trace.settings.policy.refinement.top == 5
    slider.set_value(1).run()
    assert not app.exception and app.session_state["trace"] is trace
    assert "Changed: at most 1 sentence instead of 5" in popovers(app)
    assert any("over the 1-sentence limit" in part["note"] for part in parts(app, "sentences"))
    app.select_slider(key="sentences").set_value(0).run()
    assert "Changed: no sentence limit instead of 5" in popovers(app)
    assert not any("-sentence limit" in part["note"] for part in parts(app, "sentences"))
    press(app, "Back to the defaults")
    assert app.session_state["sentences"] == 5


# --- files in data/policies -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_folder(tmp_path / "policies", monkeypatch)


def test_broken_policy_files_are_told_and_the_app_works_without_them(start: Start, folder: Path) -> None:
    (folder / "mine.toml").write_text(paper_with("upper =", "uper ="), "utf-8")
    (folder / "theirs.toml").write_bytes(b"\xff\xfe")
    app = ask(start(), PRICE)
    assert not app.exception
    assert app.selectbox(key="policy").options == ["Paper"]
    text = shown(app)
    assert "policy mine.uper: unknown key. Did you mean 'upper'?" in text
    assert "Policy 'theirs' cannot be read" in text
    assert "CORRECT" in header(app)


HOSTILE = "<img src=x onerror=alert(1)> [click](https://evil.example) :red[boo]"


def test_hostile_words_in_a_policy_file_stay_words(start: Start, folder: Path) -> None:
    own = PAPER
    for key in ("title", "summary", "source", "name", "note"):
        own = re.sub(rf"^{key} = .*$", f"{key} = '{HOSTILE}'", own, count=1, flags=re.MULTILINE)
    for label in ("Correct", "Ambiguous", "Incorrect"):
        own = own.replace(f'"{label}"', f"'{HOSTILE}'")
    assert own.count(HOSTILE) == 8
    (folder / "mine.toml").write_text(own, "utf-8")
    (folder / "theirs.toml").write_text(f'"{HOSTILE}" = 1', "utf-8")
    app = choose(start(), policy="mine")
    assert_harmless(ask(app, PRICE))
    assert_harmless(app.switch_page("pages/policies.py").run().run())


def assert_harmless(app: AppTest) -> None:
    assert not app.exception
    elements = [
        element for kind in ("markdown", "caption", "header", "subheader", "info") for element in getattr(app, kind)
    ]
    drawn = [str(element.value) for element in elements] + [button.label for button in app.button]
    told = "\n".join([*drawn, *(element.proto.help for element in app.markdown)])
    assert r"\<img" in told and r"\:red\[boo\]" in told
    assert not re.search(r"(?<!\\)<img|(?<!\\)\]\(https|(?<!\\):red\[boo", told)


def test_without_any_usable_policy_the_app_says_so(start: Start, folder: Path) -> None:
    (folder / "paper.toml").write_text("upper", "utf-8")
    app = start()
    assert not app.exception
    assert "No policy can be used" in shown(app)
    assert "Policy 'paper' is not valid TOML" in app.code[0].value


def test_own_policy_file_can_be_chosen_and_decides(start: Start, folder: Path) -> None:
    own = paper_with('"Paper"', '"My own"').replace('"Correct"', '"Good enough"').replace("0.55", "0.50")
    (folder / "mine.toml").write_text(own, "utf-8")
    app = choose(start(), policy="mine")
    assert app.selectbox(key="policy").options == ["My own", "Paper"]
    assert app.slider(key="thresholds").value == (0.4, 0.5)
    ask(app, PRICE)
    assert not app.exception
    assert "CORRECT · Good enough" in header(app)
    assert app.session_state["trace"].settings.policy.name == "mine"
    app.switch_page("pages/policies.py").run().run()
    assert not app.exception and "My own" in "".join(str(one.proto.body) for one in app.get("html"))


# --- what does not work ---------------------------------------------------------------------------------------------


def health(app: AppTest) -> dict[str, str]:
    """The lines of the health box, by their name."""
    lines = [str(element.value).replace("\\", "") for element in app.markdown]
    parts = [line.split("**") for line in lines if line.startswith(":small[:") and "**" in line]
    return {part[1]: part[2] for part in parts}


def test_audit_log_that_cannot_be_written_is_told_and_the_run_goes_on(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample-indexed").touch()
    monkeypatch.setattr(audit_log, "_ADD", "INSERT INTO nowhere VALUES (?)")
    app = ask(start(CRAG_HOME=str(tmp_path)), PRICE)
    assert "cannot be written" in health(app)["Audit log"]
    assert not app.error and "INCORRECT" in header(app)


def test_grade_cache_that_is_away_is_told_and_the_run_goes_on(start: Start) -> None:
    app = start(CRAG_CACHE="redis://:s3cret@127.0.0.1:9/0")
    assert "Grade cache" not in health(app), "nobody has asked it yet"
    ask(app, PRICE)
    assert "cannot be reached" in health(app)["Grade cache"]
    assert "s3cret" not in shown(app)
    assert "CORRECT" in header(app)


@pytest.fixture
def port() -> Iterator[int]:
    """One that is free as soon as the test asks for it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found = probe.getsockname()[1]
    yield found


def test_metrics_are_served_while_the_app_runs(start: Start, port: int) -> None:
    app = start(CRAG_METRICS_PORT=str(port))
    assert "Metrics" not in health(app)
    ask(app, PRICE)
    ask(app, "Who won the chess championship of 1972?")
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
        told = reply.read().decode()
    assert 'crag_decisions_total{category="CORRECT"} 1.0' in told
    assert 'crag_decisions_total{category="INCORRECT"} 1.0' in told
    assert 'crag_corrections_total{strategy="refinement"} 1.0' in told
    assert 'crag_retrieval_latency_seconds_count{correction_strategy="refinement",decision="CORRECT"} 1.0' in told
    assert "yacht" not in told


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"CRAG_CACHE": "rediss"}, "CRAG_CACHE"),
        ({"CRAG_WEB_PROVIDERS": "bing"}, "Unknown web search provider 'bing'"),
        ({"CRAG_WEB_PROVIDERS": "searxng"}, "CRAG_SEARXNG_URL is not set"),
        ({"CRAG_WEB_PROVIDERS": "searxng", "CRAG_SEARXNG_URL": "nonsense", "CRAG_WEB": "ask"}, "found 'nonsense'"),
        ({"KB_AGENT_MAX_ITERATION": "3"}, "Did you mean KB_AGENT_MAX_ITERATIONS?"),
        ({"CRAG_METRICS_PORT": "99999"}, "CRAG_METRICS_PORT"),
    ],
)
def test_wrong_setting_is_told_on_the_page(start: Start, environment: dict[str, str], words: str) -> None:
    app = start(**environment)
    assert not app.exception
    assert words in shown(app) + "".join(str(code.value) for code in app.code)


@pytest.mark.parametrize(
    ("own", "scorer", "said"),
    [
        (None, "cross-encoder", ""),
        (0.05, "cross-encoder", ""),
        (0.5, "cross-encoder", "0.50 is this policy's own cut-off; for the scores of cross-encoder, 0.05 is usual."),
        (0.5, "embedding", "Sentences are scored by cross-encoder, so its 0.05 holds."),
    ],
)
def test_where_two_cut_offs_differ_it_is_said_which_one_holds(own: float | None, scorer: str, said: str) -> None:
    of = policy_file("signals")
    of = replace(of, refinement=replace(of.refinement, cutoff=own, scorer=scorer))
    assert cutoff_source(of, known_card("cross-encoder")).endswith(said)
    assert bool(cutoff_source(of, known_card("cross-encoder"))) is bool(said)
