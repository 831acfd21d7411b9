"""An evaluator of somebody else in the sidebar: not calibrated, calibrated, added by name, and in a record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from crag_core.app import calibration
from crag_core.app.access import NotAllowed
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.evaluators.named import reader
from tests.evaluators.named import tiny_models
from tests.ui.conftest import Start, ask, choose, job_named, new_process, press, shown
from ui.session import access
from ui.shell import evaluator_choice

PRICE = "What does a yacht of nine metres pay for a night?"


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A random model that scores one kind of the questions of a small sample higher."""
    reader._opened.cache_clear()
    folder, data = tmp_path / "judge", tmp_path / "data"
    folder.mkdir()
    (data / "sample").mkdir(parents=True)
    (data / "questions").mkdir()
    (data / "sample" / "ferry.txt").write_text("The ferry to Orrin leaves at ten.", "utf-8")
    rows = [{"question": f"When does the ferry of day {n} leave?", "route": "INCORRECT"} for n in range(11)]
    rows += [{"question": f"Who bakes bread number {n}?", "route": "CORRECT"} for n in range(11)]
    (data / "questions" / "sample.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    monkeypatch.setattr(calibration, "DATA", data)
    return f"hf:{tiny_models.save_one_logit(folder, seed=2)}"


def test_it_is_refused_calibrated_and_then_grades(start: Start, own: Path, name: str) -> None:
    app = choose(start(CRAG_HOME=str(own), CRAG_EVALUATORS=name), evaluator=name)
    assert not app.exception and app.selectbox(key="evaluator").value == name
    assert "is not calibrated: no threshold fits its raw scores" in shown(app) and "crag-explorer calibrate" in shown(
        app
    )
    assert "is not calibrated: no threshold fits its raw scores" in shown(ask(app, PRICE))
    assert "trace" not in app.session_state and job_named(app, "run") is None
    kept = calibration.calibrate(Workbench(Config(home=own)), name)
    app = choose(start(CRAG_HOME=str(own), CRAG_EVALUATORS=name), evaluator=name)
    assert not app.exception and "Calibrated on 22 questions of sample: AUROC" in shown(app)
    assert app.slider(key="thresholds").value == (kept.lower, kept.upper)
    ask(app, PRICE)
    run = app.session_state["trace"]
    assert not app.exception and run.failure is None and run.settings.evaluator.name == name
    assert "logit" in run.grades[0].reason

    # Where it is not to be had any more, the record is still shown.
    shutil.rmtree(name.removeprefix("hf:"))
    with Workbench(Config(home=own)).experiments.tables.writing() as database:
        database.execute("DELETE FROM crag_texts WHERE kind = 'evaluators'")
    new_process()
    other = start(CRAG_HOME=str(own), CRAG_EVALUATORS="", address={"run": run.id})
    assert not other.exception and f"'{name}'" in shown(other) and "not to be had here now" in shown(other)
    assert other.session_state["trace"] == run
    again = start("pages/history.py", CRAG_HOME=str(own))
    assert not again.exception and "1 run" in shown(again)


def test_one_is_added_by_name(start: Start, name: str) -> None:
    app = start()
    app.text_input(key="evaluator_by_name").set_value("bge-reranker")
    press(app, "Add")
    assert "Expected an evaluator such as hf:OWNER/NAME" in shown(app)
    app.text_input(key="evaluator_by_name").set_value(f" {name} ")
    press(app, "Add")
    assert not app.exception and app.selectbox(key="evaluator").value == name
    assert "is not calibrated" in shown(app)


def test_a_name_in_the_address_brings_no_model(start: Start, name: str) -> None:
    app = start(address={"evaluator": name})
    assert not app.exception and app.selectbox(key="evaluator").value == "cross-encoder"


def test_who_may_not_is_offered_nothing(start: Start, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "is_administrator", lambda: False)
    app = choose(start(CRAG_EVALUATORS=name), evaluator=name)
    assert not app.exception and not [one for one in app.text_input if one.key == "evaluator_by_name"]
    with pytest.raises(NotAllowed):
        evaluator_choice.add("hf:a/b")
