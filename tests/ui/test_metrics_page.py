"""The Metrics page: what the kept runs come to, who sees whose, and what it says where there is nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types import Step, Usage
from crag_core.observability.trends import figures
from crag_core.storage.history import HistoryStore
from crag_core.trace.trace import Trace
from tests.builders import graded, policy, trace
from tests.ui.conftest import shown
from ui.metrics.metrics_page import cards

Start = Callable[..., AppTest]
PAGE = "pages/metrics.py"
HOSTILE = "<b>x</b> :red[y] [z](https://evil.example)"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def keep(history: Path, *runs: Trace, days_ago: float = 0.1, asked_by: str = "") -> None:
    store = HistoryStore(history, clock=lambda: time.time() - days_ago * 86400)
    for run in runs:
        store.save(run, asked_by=asked_by)


def run(id: str, score: float, name: str = "paper", **fields: object) -> Trace:
    from crag_core.trace.reroute import reroute

    found, grades = graded(score)
    steps = (Step("retrieve", "", seconds=0.01), Step("grade", "", seconds=0.02, usage=Usage(3, 200, 10)))
    known = {"id": id, "passages": found, "grades": grades, "context": (), "steps": steps}
    made = trace(policy(name), **known | fields)
    return replace(made, decision=reroute(made, made.settings.policy).decision)


def start_page(start: Start, history: Path, **environment: str) -> AppTest:
    return start(PAGE, CRAG_HISTORY=f"sqlite:///{history}", **environment)


def values(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def test_it_says_so_where_nothing_was_asked(start: Start, history: Path) -> None:
    app = start_page(start, history)
    assert not app.exception and "No run was kept in this time" in shown(app) and not app.metric


def test_figures_of_the_runs_beside_their_targets(start: Start, history: Path) -> None:
    keep(history, run("a", 0.9), run("b", 0.9), run("c", 0.5), run("d", 0.1))
    app = start_page(start, history)
    assert not app.exception
    found = values(app)
    assert (found["Correct"], found["Needed correction"], found["Asked the web"]) == ("50%", "50%", "0%")
    assert found["Time to decide, correct"] == "30 ms"
    text = shown(app)
    assert "2 of 4" in text and "missed" in text and "target at least 70%" in text
    assert "4 runs: 0% broke off" in text and "12 model calls" in text and "800 tokens read" in text


def test_a_longer_time_shows_older_runs(start: Start, history: Path) -> None:
    keep(history, run("a", 0.9))
    keep(history, run("b", 0.1), days_ago=20)
    app = start_page(start, history)
    assert values(app)["Correct"] == "100%"
    app.segmented_control(key="metrics_period").set_value("30 days").run()
    assert values(app)["Correct"] == "50%"
    app.segmented_control(key="metrics_period").set_value("All").run()
    assert not app.exception and values(app)["Correct"] == "50%"


def test_one_policy_by_itself(start: Start, history: Path) -> None:
    keep(history, run("a", 0.9), run("b", 0.1, "worst-chunk"))
    app = start_page(start, history)
    app.selectbox(key="metrics_policy").select("worst-chunk").run()
    assert not app.exception and values(app)["Correct"] == "0%"


def test_a_policy_that_is_no_longer_here_is_text(start: Start, history: Path) -> None:
    made = run("a", 0.9)
    alien = replace(made.settings.policy, name=HOSTILE)
    keep(history, replace(made, settings=replace(made.settings, policy=alien)))
    app = start_page(start, history)
    app.session_state["metrics_policy"] = HOSTILE
    app.run()
    assert not app.exception and values(app)["Correct"] == "100%"
    assert HOSTILE not in app.selectbox(key="metrics_policy").options


def test_imported_runs_are_nobodys_here(start: Start, history: Path) -> None:
    keep(history, run("a", 0.9))
    HistoryStore(history).save_import(run("b", 0.1))
    assert values(start_page(start, history))["Correct"] == "100%"


def test_without_the_right_only_ones_own(start: Start, history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ui.session import access

    keep(history, run("a", 0.9), asked_by="ann@example.org")
    keep(history, run("b", 0.1), asked_by="bob@example.org")
    monkeypatch.setattr(access, "user", lambda: "ann@example.org")
    monkeypatch.setattr(access, "may", lambda right: right is not access.Right.SEE_HISTORY)
    app = start_page(start, history)
    assert not app.exception and values(app)["Correct"] == "100%" and "Your own runs" in shown(app)


def test_a_history_that_is_off_is_told(start: Start) -> None:
    app = start(PAGE, CRAG_HISTORY="off")
    assert not app.exception and "CRAG_HISTORY is off" in shown(app)


def test_a_history_that_cannot_be_read_is_told(start: Start, history: Path) -> None:
    history.write_bytes(b"this is not a database" * 100)
    app = start_page(start, history)
    assert not app.exception and "cannot be read" in shown(app)


def test_a_sign_tells_whether_a_target_is_met_or_cannot_be() -> None:
    assert all(card.is_met is None and card.value == "–" for card in cards(figures(())))
