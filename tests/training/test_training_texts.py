"""Texts made from texts: what is taken away is gone, what is asked for was there, and the seed decides."""

from __future__ import annotations

from random import Random

import pytest

from crag_core.base.text.sentences import split
from training.wording import make_question, names_of, perturb, stems, without

PASSAGE = (
    "The Nordland line was founded in 1921 by Ada Berg. Its first boat, the Heron, carried 84 passengers. "
    "The company moved to Tromsø after the storm. Tickets were sold at the harbour office."
)


def made_from(passage: str, seeds: int = 200) -> list:
    spans = split(passage)
    return [made for seed in range(seeds) if (made := make_question(passage, spans, Random(seed)))]


def test_a_made_question_asks_for_a_span_of_the_sentence_it_names() -> None:
    spans = split(PASSAGE)
    found = made_from(PASSAGE)
    assert found
    for made in found:
        start, end = spans[made.sentence]
        assert start <= made.answer[0] < made.answer[1] <= end


def test_a_made_question_does_not_give_its_answer_away() -> None:
    for made in made_from(PASSAGE):
        answer = PASSAGE[slice(*made.answer)].lower()
        assert answer not in made.question.lower(), (made.question, answer)


def test_years_numbers_names_and_things_are_all_asked_for() -> None:
    answers = {PASSAGE[slice(*made.answer)] for made in made_from(PASSAGE)}
    assert {"1921", "84", "Ada Berg"} <= answers


@pytest.mark.parametrize("passage", ["", "Yes.", "?!", "no names here at all"])
def test_a_text_that_offers_nothing_gives_no_question(passage: str) -> None:
    assert made_from(passage, seeds=20) == []


def test_the_same_seed_makes_the_same_texts() -> None:
    spans = split(PASSAGE)
    assert make_question(PASSAGE, spans, Random(7)) == make_question(PASSAGE, spans, Random(7))
    asked = "Who founded the Nordland line in 1921?"
    assert perturb(asked, PASSAGE, ["Oslo"], Random(7)) == perturb(asked, PASSAGE, ["Oslo"], Random(7))


def test_a_perturbed_question_asks_for_something_else() -> None:
    asked = "Who founded the Nordland line in 1921, before the largest storm?"
    changed = {perturb(asked, PASSAGE, ["Oslo Harbour"], Random(seed)) for seed in range(60)} - {None}
    assert asked not in changed
    assert any("1921" not in question for question in changed), "another year"
    assert any("Nordland" not in question for question in changed), "another name"
    assert any("after" in question or "smallest" in question for question in changed), "an opposite"


def test_a_question_that_offers_nothing_is_left_alone() -> None:
    assert perturb("why?", "", [], Random(1)) is None


def test_a_passage_without_a_sentence_reads_on() -> None:
    spans = split(PASSAGE)
    shorter = without(PASSAGE, [spans[1]])
    assert "Heron" not in shorter and "Ada Berg. The company" in shorter
    assert without(PASSAGE, []) == PASSAGE
    assert without(PASSAGE, spans) == ""


def test_stems_join_endings_and_leave_question_words_out() -> None:
    assert stems("What was founded?") & stems("the founders of") == {"founde"}
    assert stems("what is the") == set()


def test_names_at_the_start_of_a_sentence_are_no_names() -> None:
    assert names_of(["Tickets cost little. Nobody knew that Ada Berg paid."]) == ["Ada Berg"]
