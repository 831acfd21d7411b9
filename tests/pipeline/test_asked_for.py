"""Chunks that cannot answer what a question names or compares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import Passage
from crag_core.pipeline.grading import grades_as_asked, strips_as_asked

ROW, OTHER = Passage("a", "Part: 7-0064-18; Price: 5", "parts.csv"), Passage("b", "Part: 7-0064-16; Price: 6", "p.csv")
QUESTION = "What does 7-0064-18 cost?"


def graded(passage: Passage, answering: float = 0.8) -> Grade:
    parts = (("answering", answering), ("topical", 0.9))
    return Grade(passage.id, (answering + 0.9) / 2, f"answering {answering:.2f}, topical 0.90", parts)


def test_a_chunk_without_the_code_does_not_answer_and_says_why() -> None:
    held, lacks = grades_as_asked(QUESTION, (ROW, OTHER), (graded(ROW), graded(OTHER)))
    assert held == graded(ROW)
    assert lacks.parts == (("answering", 0.0), ("topical", 0.9))
    assert lacks.score == pytest.approx(0.45)
    assert lacks.reason.startswith(
        "the question names 7-0064-18, this chunk 7-0064-16: answering 0.00 in place of 0.80"
    )


@pytest.mark.parametrize(
    "held",
    [
        Passage("b", "It costs 6.", "price of 7-0064-18.txt"),
        Passage("b", "It costs 6.", "p.txt", section="Part 7-0064-18"),
    ],
)
def test_headings_and_the_name_of_the_file_count(held: Passage) -> None:
    assert grades_as_asked(QUESTION, (ROW, held), (graded(held),)) == (graded(held),)


def test_a_code_that_no_chunk_holds_says_nothing() -> None:
    assert grades_as_asked("What is COVID-19?", (ROW, OTHER), (graded(ROW),)) == (graded(ROW),)


LATER = Passage("a", "An adult pays 8.40.", "fares-2025.csv", section="Fares")


def test_a_chunk_of_a_later_year_does_not_answer_what_was_before_it() -> None:
    [low] = grades_as_asked("What did an adult pay in 2023?", (LATER,), (graded(LATER),))
    assert low.part("answering") == 0.5 and low.part("topical") == 0.9
    assert low.reason.startswith("the question is about 2023, this chunk of 2025: answering 0.50 in place of 0.80")
    [strip] = strips_as_asked("What did an adult pay in 2023?", (LATER,), [Strip("a", 0, 0, 5, "Adult", 0.9)])
    assert strip.score == 0.45


@pytest.mark.parametrize(
    "held",
    [
        replace(LATER, source="fares.csv"),
        replace(LATER, source="fares-2021.csv"),  # they may have held until 2023
        replace(LATER, source="fares-2022-23.csv"),
        replace(LATER, text="An adult pays 8.40, as in 2023."),
    ],
)
def test_no_year_an_earlier_one_and_the_same_exclude_nothing(held: Passage) -> None:
    assert grades_as_asked("What did an adult pay in 2023?", (held,), (graded(held),)) == (graded(held),)


@pytest.mark.parametrize("grade", [Grade("b", 0.7), Grade("b", None, cause="away"), graded(OTHER, 0.0)])
def test_grades_without_such_a_part_or_none_stay(grade: Grade) -> None:
    assert grades_as_asked(QUESTION, (ROW, OTHER), (grade,)) == (grade,)


def test_two_things_asked_together_take_a_sentence_that_has_both() -> None:
    apart = Passage("a", "The sauna opens at 10:00. The pool opens at 7:00.", "a.txt")
    both = Passage("b", "The pool opens before the sauna.", "b.txt")
    low, kept = grades_as_asked(
        "Which opens earlier, the sauna or the pool?", (apart, both), (graded(apart), graded(both))
    )
    assert low.part("answering") == 0.5 and "together" in low.reason
    assert kept == graded(both)


def test_sentences_of_a_chunk_without_the_code_score_nothing() -> None:
    strips = [Strip(one.id, 0, 0, len(one.text), one.text, 0.6) for one in (ROW, OTHER)]
    assert [one.score for one in strips_as_asked(QUESTION, (ROW, OTHER), strips)] == [0.6, 0.0]
