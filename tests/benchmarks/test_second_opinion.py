"""The benchmark of second readers: who is asked, what a reader of an accuracy says, and what its figures are of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import second_opinion
from benchmarks.measures import Estimate
from benchmarks.second_opinion import ACCURACIES, gain, measure, read_again, take
from benchmarks.sets import Question
from crag_core.base.types import Grade, Passage
from crag_core.decision.policy import SecondOpinion
from tests.builders import policy

TWO = replace(policy("two-signal").with_thresholds(0.3, 0.7), second_opinion=SecondOpinion("llm", (0.4, 0.8)))
PASSAGES = (Passage("p1", "one", "s"), Passage("p2", "two", "s"))


def case(label: str, answering: float, topical: float = 0.9) -> tuple[Question, tuple[Grade, ...]]:
    """A question of two chunks; the second scores less."""
    scores = (answering, answering - 0.05)
    grades = tuple(
        Grade(one.id, score, parts=(("answering", score), ("topical", topical)))
        for one, score in zip(PASSAGES, scores, strict=True)
    )
    return Question("?", PASSAGES, ("", ""), label), grades


CASES = [case("correct", 0.6)] * 40 + [case("ambiguous_or_incorrect", 0.78)] * 40 + [case("incorrect", 0.1, 0.1)] * 20
QUESTIONS, GRADES = [one for one, _ in CASES], [grades for _, grades in CASES]


def test_a_reader_that_is_always_right_says_yes_to_the_best_chunk_of_an_answered_question_alone() -> None:
    right = read_again(TWO, QUESTIONS, GRADES, 1.0)
    said = [tuple(grade.second.score if grade.second else None for grade in one) for one in right]
    assert said == [(0.9, 0.1)] * 40 + [(0.1, 0.1)] * 40 + [(None, None)] * 20
    assert list(take(TWO, QUESTIONS, right)) == [0] * 40 + [1] * 40 + [2] * 20
    wrong = read_again(TWO, QUESTIONS, GRADES, 0.0)
    assert list(take(TWO, QUESTIONS, wrong)) == [1] * 40 + [0] * 40 + [2] * 20


def test_a_better_reader_gains_more_and_only_chunks_in_doubt_are_asked_about() -> None:
    table = measure(TWO, QUESTIONS, GRADES)
    rows = table.plain()
    assert table.title == "band 0.40 to 0.80" and len(rows) == 1 + len(ACCURACIES)
    gains = [rows[f"{accuracy:.0%} right"]["gain"]["value"] for accuracy in ACCURACIES]
    assert gains == sorted(gains) and gains[0] > 0
    asked = rows["90% right"]
    assert asked["questions asked"]["value"] == 0.8 and asked["chunks a question"] == 1.6


def test_a_reader_that_changes_nothing_gains_nothing() -> None:
    alone = take(TWO, QUESTIONS, GRADES)
    assert gain(alone, alone, alone) == Estimate(0.0, 0.0, 0.0)


def test_without_the_shared_data_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(second_opinion, "DATA", tmp_path)
    second_opinion.main([])
    assert capsys.readouterr().out == "skipped: shared data not found\n"
