"""Configurations side by side: the same questions, what each gains over the first, and routes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Usage
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.table import Cell, Table, to_csv, to_data, to_text
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.statistics.intervals import Estimate

CORRECT, AMBIGUOUS, INCORRECT, UNANSWERABLE = Expected


def questions(*expected: Expected) -> list[LabelledQuestion]:
    return [LabelledQuestion(f"Question {number}?", one) for number, one in enumerate(expected)]


def outcome(asked: LabelledQuestion, action: Action = Action.CORRECT, **fields: Any) -> Outcome:
    return Outcome(asked.key, "run", action, **{"is_answered": True} | fields)


def results(asked: Sequence[LabelledQuestion], *each: dict[str, Any]) -> dict[str, Outcome]:
    """The outcomes of `asked` with these fields, one a question."""
    return {one.key: outcome(one, **fields) for one, fields in zip(asked, each, strict=True)}


def calls(*numbers: int) -> list[dict[str, Any]]:
    return [{"usage": Usage(number)} for number in numbers]


def cells(table: Table, name: str) -> tuple[Cell, ...]:
    row = table.row(name)
    assert row is not None
    return row.cells


def values(table: Table, name: str) -> list[float | None]:
    return [cell.found.value if cell.found else None for cell in cells(table, name)]


# --- values and gains -----------------------------------------------------------------------------------------------


def test_every_measure_is_that_of_its_questions() -> None:
    asked = questions(CORRECT, CORRECT, CORRECT, INCORRECT)
    found = results(
        asked,
        {"contains": 1.0, "sentences": 4, "grounded": 1},
        {"contains": 0.0, "sentences": 1, "grounded": 1},
        {"action": Action.AMBIGUOUS, "is_answered": False},
        {"action": Action.INCORRECT, "sentences": 5, "grounded": 2},
    )
    table = Table(asked, {"one": found})
    assert values(table, "right") == [0.75] and values(table, "right_correct") == [pytest.approx(2 / 3)]
    assert values(table, "contains") == [0.5] and cells(table, "contains")[0].counted == 2
    assert values(table, "grounded") == [0.4], "of ten sentences, whatever question they belong to"
    assert cells(table, "grounded")[0].counted == 3
    assert values(table, "abstained_answerable") == [pytest.approx(1 / 3)]
    assert values(table, "answered_unanswerable") == [1.0] and cells(table, "answered_unanswerable")[0].counted == 1


def test_the_first_configuration_gains_nothing_and_every_other_one_over_it() -> None:
    asked = questions(*[CORRECT] * 6)
    table = Table(
        asked,
        {
            "first": results(asked, *calls(4, 4, 4, 4, 4, 4)),
            "less": results(asked, *calls(3, 3, 3, 3, 3, 3)),
            "more": results(asked, *calls(4, 10, 4, 4, 4, 10)),
            "same": results(asked, *calls(4, 4, 4, 4, 4, 4)),
        },
    )
    assert table.names == ("first", "less", "more", "same")
    first, less, more, same = cells(table, "calls")
    assert first == Cell(Estimate(4.0, 4.0, 4.0), 6) and not first.is_certain
    assert less.gain == Estimate(-1.0, -1.0, -1.0)
    assert less.is_certain
    assert more.gain is not None and (more.gain.value, more.gain.low, more.gain.high) == (2.0, 0.0, 4.0)
    assert not more.is_certain, "0 is within"
    assert same.gain == Estimate(0.0, 0.0, 0.0) and not same.is_certain
    assert [one.is_same for one in (first, less, more, same)] == [False, False, False, True]


def test_a_measure_that_only_one_configuration_has_is_told_without_a_gain() -> None:
    asked = questions(CORRECT, CORRECT)
    has = results(asked, {"contains": 1.0}, {"contains": 0.0})
    lacks = results(asked, {}, {})
    for found, where in (({"first": has, "other": lacks}, 0), ({"first": lacks, "other": has}, 1)):
        row = cells(Table(asked, found), "contains")
        assert row[where].found is not None and row[1 - where] == Cell(None, 0)
        assert row[1].gain is None and not row[1].is_certain


def test_a_measure_that_no_configuration_has_is_left_out() -> None:
    asked = questions(CORRECT)
    table = Table(asked, {"one": results(asked, {})})
    assert table.row("contains") is table.row("mrr_after") is table.row("no such measure") is None
    names = " ".join(row.measure.name for row in table.rows)
    assert names == "right right_correct abstained_answerable corrected web needless_web seconds calls tokens"


# --- which questions ------------------------------------------------------------------------------------------------


def test_only_questions_that_all_have_finished_are_compared() -> None:
    asked = questions(*[CORRECT] * 5)
    first, other = results(asked, *calls(1, 2, 3, 4, 5)), results(asked, *calls(1, 2, 3, 4, 5))
    del other[asked[1].key]
    first[asked[3].key] = Outcome(asked[3].key, "run", None, failed="answer: away")
    table = Table(asked, {"first": first, "other": other})
    assert table.questions == (asked[0], asked[2], asked[4]) and table.left_out == 2
    assert values(table, "calls") == [3.0, 3.0]
    assert table.confusion("other") == {CORRECT: {Action.CORRECT: 3, Action.AMBIGUOUS: 0, Action.INCORRECT: 0}}


@pytest.mark.parametrize("asked", [[], questions(CORRECT, INCORRECT)])
def test_no_question_that_all_have_finished_leaves_an_empty_table(asked: list[LabelledQuestion]) -> None:
    table = Table(asked, {"one": {}, "other": results(asked, *({} for _ in asked))})
    assert (table.rows, table.questions, table.left_out) == ((), (), len(asked))
    assert table.row("right") is None
    for name in table.names:
        assert table.confusion(name) == {}


def test_one_question_is_enough_and_makes_nothing_certain() -> None:
    asked = questions(CORRECT)
    silent = {"usage": Usage(3), "action": Action.INCORRECT, "is_answered": False}
    table = Table(asked, {"first": results(asked, *calls(2)), "other": results(asked, silent)})
    assert values(table, "calls") == [2.0, 3.0] and values(table, "right") == [1.0, 0.0]
    assert not any(cell.is_certain for row in table.rows for cell in row.cells)
    figures = json.loads(json.dumps(to_data(table), allow_nan=False))["measures"]
    told = {one["name"]: one["cells"]["other"] for one in figures}
    assert told["calls"]["found"] == {"value": 3.0, "low": None, "high": None}
    assert told["right"]["found"] == {"value": 0.0, "low": 0.0, "high": pytest.approx(0.975)}
    assert "calls,LLM calls,count,-1,other,3.0,,,1,1.0,," in to_csv(table)
    assert "LLM calls (1)" in to_text(table) and "0.0% (0.0%–97.5%)" in to_text(table)


# --- routes ---------------------------------------------------------------------------------------------------------


def test_confusion_counts_what_was_done_by_what_was_expected() -> None:
    asked = questions(CORRECT, CORRECT, CORRECT, UNANSWERABLE, UNANSWERABLE, AMBIGUOUS)
    done = [Action.CORRECT, Action.CORRECT, Action.INCORRECT, Action.AMBIGUOUS, Action.INCORRECT, Action.CORRECT]
    table = Table(asked, {"one": results(asked, *({"action": action} for action in done))})
    assert table.confusion("one") == {
        CORRECT: {Action.CORRECT: 2, Action.AMBIGUOUS: 0, Action.INCORRECT: 1},
        AMBIGUOUS: {Action.CORRECT: 1, Action.AMBIGUOUS: 0, Action.INCORRECT: 0},
        UNANSWERABLE: {Action.CORRECT: 0, Action.AMBIGUOUS: 1, Action.INCORRECT: 1},
    }
