"""The benchmark of tuning, on few questions: that its figures are of what it says, and that it says what is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import tuning, tuning_speed
from benchmarks.tables import Table
from benchmarks.tuning_bound import board_of, measure_bound, naive_choice, unanswerable
from benchmarks.tuning_gain import SHIPPED, WISHES, GradedSet, Range, grade, measure_gain, measure_halvings, published
from benchmarks.tuning_speed import JUDGE, made_up, measure_recommend, measure_surfaces
from crag_core.app import workbench
from crag_core.base.types.decisions import Action, Decision
from crag_core.decision.decide import decide
from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.evaluators.policies import find_policy, known_card, load_policies, suit
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.thresholds.objective import Objective, losses
from crag_core.experiments.thresholds.recommend import halves
from crag_core.experiments.thresholds.threshold_board import Board, Prices
from tests.benchmarks.test_sets import ask, write_set
from tests.builders import POLICIES
from tests.word_embedder import WordEmbedder

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def graded() -> GradedSet:
    return GradedSet(tuple(made_up(120)), known_card(JUDGE))


# --- time -----------------------------------------------------------------------------------------------------------


def test_made_up_questions_are_the_same_each_time_and_half_of_them_answerable() -> None:
    cases = made_up(40)
    assert cases == made_up(40) and len({case.scored.key for case in cases}) == 40
    assert sum(case.asked.expected.is_answerable for case in cases) == 20
    assert {case.asked.expected for case in cases} == {Expected.CORRECT, Expected.UNANSWERABLE, Expected.INCORRECT}


def test_every_policy_is_timed_beside_decide() -> None:
    surfaces, recommended = measure_surfaces(20, 1).plain(), measure_recommend((24,), 1).plain()
    assert set(surfaces) == set(recommended) == set(load_policies()[0]) == set(POLICIES)
    for row in surfaces.values():
        assert row["Board, s (median of 1)"] > 0 and row["decide, s (from 12 cells)"] > 0
        assert set(row) >= {"target 0.5 s", "times faster"}
    assert all(row["24 questions, s"] > 0 for row in recommended.values())
    assert measure_surfaces(20, 1).title == "20 questions, a grid of 21 x 21"


def test_arrays_that_say_something_else_than_decide_are_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(*arguments: Any) -> Decision:
        told = decide(*arguments)
        return replace(told, action=next(action for action in Action if action is not told.action))

    monkeypatch.setattr(tuning_speed, "decide", turned)
    with pytest.raises(RuntimeError, match="decide says something else than Board"):
        measure_surfaces(20, 1)


# --- gains ----------------------------------------------------------------------------------------------------------


def test_presets_of_the_same_thresholds_are_one() -> None:
    start = suit(find_policy("paper"), JUDGE)
    assert published("paper", JUDGE) == (
        (SHIPPED, start.lower, start.upper),
        ("popqa", 0.005, 0.795),
        ("pubhealth/arc-challenge", 0.045, 0.75),
        ("biography", 0.045, 0.975),
    )
    assert [name for name, _, _ in published("two-signal", JUDGE)] == [SHIPPED]


def test_a_gain_is_what_the_other_half_costs_less(graded: GradedSet) -> None:
    rows = measure_gain(graded, "paper", halvings=1)["one"].plain()
    assert list(rows) == [wish.name for wish in WISHES]
    row = rows["default costs"]
    board = Board(suit(find_policy("paper"), JUDGE), graded.cases, graded.judge)
    judged = board.part(~halves(board, 0))
    loss = losses(judged, Objective(), Prices())

    def cost(lower: float, upper: float) -> float:
        return float(loss[np.arange(len(judged)), judged.actions(lower, upper)].mean())

    own = cost(float(row["lower"]), float(row["upper"]))
    assert float(row["cost"]) == pytest.approx(own, abs=0.001)
    for name, lower, upper in published("paper", JUDGE):
        gain = row[f"gain over {name}"]
        assert gain["value"] == pytest.approx(cost(lower, upper) - own) and gain["low"] <= gain["value"] <= gain["high"]


def test_many_halvings_give_a_median_with_the_least_and_the_most(graded: GradedSet) -> None:
    tables = measure_gain(graded, "two-signal", halvings=3)
    rows = tables["many"].plain()
    gain = rows["default costs"][f"gain over {SHIPPED}"]
    assert gain["low"] <= gain["value"] <= gain["high"]
    assert rows["default costs"]["thresholds"] == "3 of 3" and rows["default costs"]["limit broken"] is None
    assert rows["confidently wrong <= 10%, as seen"]["limit broken"] in [f"{count} of 3" for count in range(4)]
    assert "120 questions, 3 halvings" in str(tables["many"])


def test_questions_that_no_thresholds_can_be_chosen_from_say_so(graded: GradedSet) -> None:
    tables = measure_gain(replace(graded, cases=graded.cases[:10]), "paper", halvings=2)
    assert "from 10 questions: 20 are needed" in tables["one"].plain()["default costs"]["refused"]
    assert tables["many"].plain()["default costs"] == {"thresholds": "0 of 2"}


def test_halvings_compare_yours_with_the_recommended_on_the_other_half(graded: GradedSet) -> None:
    rows = measure_halvings({"made up": graded}, "paper", halvings=2).plain()
    row = rows["made up, 60 questions"]
    assert row["worse"].endswith("of 2") and row["gain"]["low"] <= row["gain"]["value"] <= row["gain"]["high"]


def test_a_loss_is_not_shown_as_a_gain() -> None:
    told = Range(-0.05, -0.1, 0.0)
    assert str(told) == "-0.050 (-0.100 to +0.000)"
    assert Table("t", {"row": {"gain": told}}).plain() == {"row": {"gain": {"value": -0.05, "low": -0.1, "high": 0.0}}}


def test_a_set_is_graded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    routes = ("correct", "ambiguous_or_incorrect", "incorrect")
    folder = write_set(tmp_path / "set", [ask(n, f"Question {n}", route=routes[n % 3]) for n in range(6)])
    first = grade(folder, tmp_path / "home", "embedding", print)
    assert len(first.cases) == 6 and first.judge.name == "embedding"

    def fail(*anything: object) -> None:
        raise AssertionError("graded again")

    monkeypatch.setattr(EmbeddingEvaluator, "grade", fail)
    assert grade(folder, tmp_path / "home", "embedding", print) == first


# --- the bound ------------------------------------------------------------------------------------------------------


def test_the_bound_is_broken_less_often_than_the_naive_choice() -> None:
    rows = measure_bound(60, 100).plain()
    assert len(rows) == 6
    for row in rows.values():
        assert row["bound: broken"]["value"] <= 0.2 < row["naive: broken"]["value"]
        assert row["bound: mean true rate"] < row["naive: mean true rate"]


def test_too_few_questions_promise_nothing_and_break_nothing() -> None:
    row = measure_bound(5, 20).plain()["limit 5%, delta 5%"]
    assert row["bound: broken"]["value"] == row["bound: mean true rate"] == 0.0


def test_the_naive_choice_is_the_lowest_threshold_that_keeps_the_limit() -> None:
    scores = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    board = board_of(unanswerable(5), scores, find_policy("paper"))
    assert [naive_choice(board, limit) for limit in (0.1, 0.2, 0.4)] == [0.901, 0.701, 0.501]


# --- from end to end ------------------------------------------------------------------------------------------------


def test_parts_are_printed_and_written_as_json(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "report.json"
    tuning.main(["--only", "bound", "--simulations", "3", "--json", str(file)])
    printed = capsys.readouterr().out
    assert "| 3 sets of 200 unanswerable questions |" in printed and "## Time" not in printed
    report = json.loads(file.read_text("utf-8"))
    assert set(report) == {"bound"} and len(report["bound"]["bound"]) == 6


def test_gains_are_printed_for_both_policies(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch, graded: GradedSet
) -> None:
    (tmp_path / "dev" / "sets" / "route_dev").mkdir(parents=True)
    monkeypatch.setattr(tuning, "DATA", tmp_path)
    monkeypatch.setattr(tuning, "grade", lambda folder, home, evaluator, tell: graded)
    tuning.main(["--only", "gain", "--halvings", "2"])
    printed = capsys.readouterr().out
    assert "| paper, 120 questions, one halving" in printed and "| two-signal, 120 questions, 2 halvings" in printed


def test_without_shared_data_it_says_so_and_ends_well(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "DATA", tmp_path / "nothing")
    tuning.main(["--only", "gain"])
    assert capsys.readouterr().out.endswith("skipped: shared data not found\n")


@pytest.mark.parametrize("option", ["--halvings=0", "--simulations=x", "--only=speed"])
def test_a_wrong_option_is_named(capsys: Output, option: str) -> None:
    with pytest.raises(SystemExit) as ended:
        tuning.main([option])
    assert ended.value.code == 2 and option.partition("=")[2] in capsys.readouterr().err
