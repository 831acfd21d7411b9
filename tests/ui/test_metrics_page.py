"""The Metrics page: what the kept runs come to, who sees whose, and what it says where there is nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types.steps import Step, Usage
from crag_core.storage.history import HistoryStore
from crag_core.trace.trace import Trace
from tests.builders import graded, policy, trace
from tests.ui.conftest import shown

Start = Callable[..., AppTest]
PAGE = "pages/metrics.py"


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
    """The value on each card, by its name."""
    return {metric.label: metric.value for metric in app.metric}


def test_it_says_so_where_nothing_was_asked(start: Start, history: Path) -> None:
    app = start_page(start, history)
    assert not app.exception and "No runs in this period" in shown(app) and not values(app)


def test_every_figure_says_what_it_is_counted_of_and_none_is_judged(start: Start, history: Path) -> None:
    keep(history, *(run(f"run-{number}", (0.9, 0.9, 0.5, 0.1)[number % 4]) for number in range(40)))
    keep(history, replace(run("failed", 0.9), decision=None))
    app = start_page(start, history)
    assert not app.exception
    found = values(app)
    assert (found["Routed CORRECT"], found["Searched the web"], found["LLM calls"]) == ("50%", "0%", "123")
    assert (found["Best score rose after correction"], found["Decision time"]) == ("–", "30 ms")
    made_from = " ".join(metric.delta for metric in app.metric)
    assert "20 of 40 decided runs" in made_from and "0 of 0 corrected runs" in made_from and "8,610 tokens" in made_from
    assert "median of 20 CORRECT runs, p95 30 ms" in made_from and "median of 20 corrected runs" in made_from
    assert "**41 runs** :gray[40 decided" in shown(app) and ":green[CORRECT 50%]" in shown(app)


def test_the_table_is_made_when_it_is_opened(start: Start, history: Path) -> None:
    keep(history, run("a", 0.9))
    app = start_page(start, history)
    assert not app.dataframe
    app.session_state["metrics_numbers"] = True
    app.run()
    assert not app.exception and list(app.dataframe[0].value["Decision time"]) == ["30 ms"]


def test_one_policy_by_itself(start: Start, history: Path) -> None:
    keep(history, run("a", 0.9), run("b", 0.1, "worst-chunk"))
    app = start_page(start, history)
    app.selectbox(key="metrics_policy").select("worst-chunk").run()
    assert not app.exception and values(app)["Routed CORRECT"] == "0%"


def test_without_the_right_only_ones_own(start: Start, history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ui.session import access

    keep(history, run("a", 0.9), asked_by="ann@example.org")
    keep(history, run("b", 0.1), asked_by="bob@example.org")
    monkeypatch.setattr(access, "user", lambda: "ann@example.org")
    monkeypatch.setattr(access, "is_administrator", lambda: False)
    app = start_page(start, history)
    assert not app.exception and values(app)["Routed CORRECT"] == "100%" and "Your own runs only." in shown(app)


def test_a_history_that_cannot_be_read_is_told(start: Start, history: Path) -> None:
    history.write_bytes(b"this is not a database" * 100)
    app = start_page(start, history)
    assert not app.exception and "cannot be read" in shown(app)
