"""What people said of routes as labelled questions: whose word holds, and what is not used."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from crag_core.base.types.decisions import Action
from crag_core.experiments.labelled.from_feedback import questions_from
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet, Origin
from crag_core.trace.feedback import About, Label, Mark

CORRECT, AMBIGUOUS, INCORRECT = Action


def said(question: str, action: Action | None, expected: Action | None = None, **fields: Any) -> Label:
    """Of a route, or of an answer without `action`: right, or wrong where `is_wrong` or an expected route tell so."""
    is_wrong = fields.pop("is_wrong", expected is not None)
    day = fields.pop("day", 1)
    about = About.ANSWER if action is None else About.ROUTE
    plain: dict[str, Any] = dict(
        run_id=f"run of {question} on {day}",
        about=about,
        target="",
        mark=Mark.WRONG if is_wrong else Mark.RIGHT,
        question=question,
        text="",
        policy="paper",
        lower=0.3,
        upper=0.7,
        evaluator="heuristic",
        evaluator_version="1",
        created=f"2025-01-{day:02}T10:00:00+00:00",
        action=action,
        expected=expected,
    )
    return Label(**plain | fields)


def expected_by(*labels: Label) -> dict[str, str]:
    return {question.question: question.expected.value for question in questions_from(labels)[0]}


def test_a_label_becomes_a_question_that_tells_where_it_comes_from() -> None:
    note = "Said on 2025-01-07, with the policy paper."
    asked = LabelledQuestion("Where?", Expected.AMBIGUOUS, origin=Origin.FEEDBACK, note=note)
    assert questions_from([said("Where?", CORRECT, AMBIGUOUS, day=7)]) == ((asked,), 0)


def test_the_newest_label_of_a_question_holds() -> None:
    labels = [
        said("A?", CORRECT, day=1),
        said("A? ", CORRECT, INCORRECT, day=2),
        said("A?", INCORRECT, day=3),
        said("A?", AMBIGUOUS, INCORRECT, day=4),
    ]
    for order in permutations(labels):
        (found,), _ = questions_from(order)
        assert found.expected is Expected.INCORRECT and "2025-01-04" in found.note


def test_a_label_is_as_new_as_its_last_correction() -> None:
    first, between = said("A?", CORRECT, run_id="1", day=1), said("A?", INCORRECT, day=2)
    assert expected_by(first, between, said("A?", CORRECT, AMBIGUOUS, run_id="1", day=3)) == {"A?": "AMBIGUOUS"}


def test_a_label_that_names_no_route_leaves_the_one_that_does() -> None:
    doubt, agreed = said("A?", CORRECT, is_wrong=True, day=9), said("A?", INCORRECT, is_wrong=True, day=8)
    found, unspecific = questions_from([doubt, agreed, said("A?", CORRECT)])
    assert [one.expected for one in found] == [Expected.CORRECT] and unspecific == 2


def test_who_takes_a_route_back_without_naming_another_has_no_say() -> None:
    taken_back = [said("A?", CORRECT, run_id="1"), said("A?", CORRECT, is_wrong=True, run_id="1", day=2)]
    assert questions_from(taken_back) == ((), 1)


def test_labels_of_answers_and_passages_are_not_used() -> None:
    passage = said("C?", None, about=About.PASSAGE, mark=Mark.RELEVANT, target="p1")
    assert questions_from([said("A?", None, is_wrong=True), said("B?", None), passage]) == ((), 0)


def test_questions_that_no_screen_can_take() -> None:
    labels = [said("\x00 ", CORRECT), said("A\ud800\x07? ", CORRECT, day=2), said("A\udfff?", INCORRECT, day=3)]
    assert expected_by(*labels) == {"A\ufffd?": "INCORRECT"}
    LabelledSet("said", questions_from(labels)[0])
