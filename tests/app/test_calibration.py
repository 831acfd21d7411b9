"""An evaluator by name on its whole way: refused, calibrated, used, recorded, refused again when its files change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from crag_core.__main__ import main
from crag_core.app import calibration
from crag_core.app.workbench import Workbench, build_pipeline
from crag_core.base.errors import BadRecord, EvaluatorUnavailable, NotCalibrated, UnknownName
from crag_core.evaluators.named import reader
from crag_core.evaluators.named.evaluator import NamedEvaluator
from crag_core.evaluators.policies import find_policy, known_card
from crag_core.llamaindex.parts import evaluator_of
from crag_core.trace.trace import Trace
from tests.app.test_tuning_commands import home as home
from tests.app.test_tuning_commands import labelled as labelled
from tests.evaluators.named import tiny_models

Output = pytest.CaptureFixture[str]
QUESTION = "When does the ferry to Orrin leave?"
SEED = 2
"""Of a random model that happens to give ferries higher scores where a question is about ferries."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    reader._opened.cache_clear()
    made = tmp_path / "judge"
    made.mkdir()
    return tiny_models.save_one_logit(made, seed=SEED)


def test_scores_fit_no_threshold_until_it_is_calibrated(home: Path, folder: Path, capsys: Output) -> None:
    name = f"hf:{folder}"
    assert main(["ask", QUESTION, "--evaluator", name]) == 1
    told = capsys.readouterr().err
    assert f"{name} is not calibrated: no threshold fits its raw scores." in told
    assert f"crag-explorer calibrate '{name}'" in told
    for start in (build_pipeline, lambda evaluator: Workbench().evaluator(evaluator, None)):
        with pytest.raises(NotCalibrated):
            start(evaluator=name)
    with pytest.raises(UnknownName, match="hf:OWNER/NAME"):
        build_pipeline(evaluator="hf:../x")
    assert name not in Workbench().cards()


def test_calibrated_evaluator_grades_decides_and_is_recorded(labelled: Path, folder: Path, capsys: Output) -> None:
    name = f"hf:{folder}"
    assert main(["calibrate", name, "--set", str(labelled)]) == 0
    shown = capsys.readouterr()
    assert "graded 30 of 30" in shown.err and "calibrated on 30 questions of questions: AUROC 0." in shown.out
    bench = Workbench()
    kept, card = bench.experiments.evaluators()[name], bench.cards()[name]
    assert kept.curve.questions == 30 and kept.curve.coefficients[0] > 0
    assert kept.remark == "" or "No question of the set reaches CORRECT" in kept.remark
    assert (card.lower, card.upper) == (kept.lower, kept.upper) and "no LLM call, about" in card.cost
    assert bench.suited(find_policy("paper"), name).thresholds[:2] == (kept.lower, kept.upper)
    capsys.readouterr()
    assert main(["ask", QUESTION, "--evaluator", name, "--policy", "paper", "--json"]) == 0
    run = build_pipeline(evaluator=name).run(QUESTION)
    assert run.settings.evaluator == card and kept.revision in card.version and run.grades
    for grade in run.grades:
        assert grade.score == pytest.approx(kept.curve.probability(dict(grade.parts)["logit"]))
    # Elsewhere there is neither model nor calibration: the record still opens, and says whose grades these are.
    shutil.rmtree(folder)
    assert Trace.from_json(run.to_json()) == run
    again = build_pipeline(evaluator="embedding")
    assert again.settings.evaluator.name == "embedding" and known_card(name).title == "judge"
    with pytest.raises(EvaluatorUnavailable, match="no such folder"):
        build_pipeline(evaluator=name)


def test_other_files_are_another_evaluator(labelled: Path, folder: Path, capsys: Output) -> None:
    name = f"hf:{folder}"
    assert main(["calibrate", name, "--set", str(labelled)]) == 0
    first = Workbench().experiments.evaluators()[name]
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-11}))
    with pytest.raises(NotCalibrated, match="is another model now: expected files with digest"):
        build_pipeline(evaluator=name)
    assert main(["calibrate", name, "--set", str(labelled)]) == 0
    second = Workbench().experiments.evaluators()[name]
    assert second.revision != first.revision and len(Workbench().experiments.evaluators()) == 1
    build_pipeline(evaluator=name)


def test_grading_that_was_stopped_goes_on(labelled: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, graded = f"hf:{folder}", NamedEvaluator.grade
    asked: list[str] = []

    def grade(self: NamedEvaluator, question: str, *rest: object) -> object:
        asked.append(question)
        if len(asked) == 7:
            raise KeyboardInterrupt
        return graded(self, question, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(NamedEvaluator, "grade", grade)
    with pytest.raises(SystemExit):
        main(["calibrate", name, "--set", str(labelled)])
    assert name not in Workbench().experiments.evaluators()
    assert main(["calibrate", name, "--set", str(labelled)]) == 0
    assert 30 <= len(asked) <= 33


def test_a_set_that_it_does_not_tell_apart_calibrates_nothing(labelled: Path, folder: Path, capsys: Output) -> None:
    lines = labelled.read_text("utf-8").splitlines()
    swapped = [line.replace(",correct", ",X").replace(",unanswerable", ",correct") for line in lines]
    labelled.write_text("\n".join(line.replace(",X", ",unanswerable") for line in swapped), "utf-8")
    assert main(["calibrate", f"hf:{folder}", "--set", str(labelled)]) == 1
    assert "expected higher scores where the documents answer, found AUROC 0." in capsys.readouterr().err
    few = labelled.with_name("few.csv")
    few.write_text("\n".join(lines[:15]), "utf-8")
    assert main(["calibrate", f"hf:{folder}", "--set", str(few)]) == 1
    assert "needs 10 graded questions or more" in capsys.readouterr().err
    assert not Workbench().experiments.evaluators()


def test_sample_is_indexed_apart_from_the_users_documents(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    (data / "sample").mkdir(parents=True)
    (data / "questions").mkdir()
    (data / "sample" / "ferry.txt").write_text("The ferry to Orrin leaves at ten.", "utf-8")
    # The random model likes bread better where there is one ferry only.
    rows = [{"question": f"When does the ferry of day {n} leave?", "route": "INCORRECT"} for n in range(11)]
    rows += [{"question": f"Who bakes bread number {n}?", "route": "CORRECT"} for n in range(11)]
    (data / "questions" / "sample.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    monkeypatch.setattr(calibration, "DATA", data)
    bench, told = Workbench(), []
    kept = calibration.calibrate(bench, f"hf:{folder}", tell=told.append)
    assert kept.labelled == "sample" and kept.curve.questions == 22
    assert told == ["Indexing 1 sample documents, apart from yours"]
    assert bench.store.documents() == ()
    calibration.calibrate(bench, f"hf:{folder}", tell=told.append)
    assert len(told) == 1, "the second time it is there"


def test_calibrations_of_before_are_read_and_those_of_interfaces_that_are_gone_are_left_out(
    labelled: Path, folder: Path
) -> None:
    name = f"hf:{folder}"
    assert main(["calibrate", name, "--set", str(labelled)]) == 0
    tables = Workbench().experiments.tables
    ((title, text),) = tables.rows("SELECT name, text FROM crag_texts WHERE kind = 'evaluators'")
    now, plain = Workbench().experiments.evaluators(), json.loads(text)
    for interface, called, read in (("one-logit", name, now), ("span", name, {}), ("yes-no", f"{name}?as=yes-no", {})):
        curve = plain["curve"] | {"kind": "platt", "corpus": "c0ffee", "created": "2026-01-31"}
        told = plain | {"interface": interface, "strip_cutoff": 0.05, "name": called, "curve": curve}
        Workbench().experiments._save("evaluators", title, json.dumps(told))
        assert Workbench().experiments.evaluators() == read
    for broken in ("[]", "{}", '"x"'):
        Workbench().experiments._save("evaluators", title, broken)
        assert Workbench().experiments.evaluators() == {}


def test_llamaindex_says_where_such_an_evaluator_comes_from(folder: Path) -> None:
    with pytest.raises(BadRecord, match=r"Workbench\(\)\.evaluator"):
        evaluator_of(f"hf:{folder}", None)
    judge = NamedEvaluator(calibration.parse_name(f"hf:{folder}"))
    assert evaluator_of(judge, None) is judge
