"""What of the evidence the labels of a question make relevant: by document, by the text of an answer, or neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from crag_core.base.types.passages import Origin, Passage
from crag_core.experiments.comparison.outcome import of_documents, of_passage, spans
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion

CORRECT, AMBIGUOUS, INCORRECT, UNANSWERABLE = Expected
NOT_ANSWERED = (AMBIGUOUS, INCORRECT, UNANSWERABLE)
TIMES = "The ferry leaves at nine."
PRICES = "A ticket costs four euros."


def ask(*answers: str, document: str = "", expected: Expected = CORRECT) -> LabelledQuestion:
    return LabelledQuestion("When does the ferry leave?", expected, answers, document)


def passage(text: str, source: str = "times.md", **fields: Any) -> Passage:
    return Passage("p1", text, source, **fields)


def page(text: str) -> Passage:
    return Passage("w1", text, "times.md", Origin.WEB, url="https://example.org/times")


# --- what can be looked for -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (("Nine  in the\nMorning",), ("nine in the morning",)),
        (("one two three four five six seven eight nine ten eleven twelve",), None),
        (("one two three four five six seven eight nine ten eleven twelve thirteen",), ()),
        (("yes", "No", "TRUE", "false", "Yes.", " no! "), ()),
        (("yes, at nine",), ("yes, at nine",)),
        (("", "  ", "?", "—"), ()),
        (("nine", "at nine", ""), ("nine", "at nine")),
        (("STRASSE", "Straße"), ("strasse", "strasse")),
        (("十二時に出発します",), ("十二時に出発します",)),
        ((), ()),
    ],
)
def test_answers_of_a_few_words_can_be_looked_for(answers: tuple[str, ...], expected: tuple[str, ...] | None) -> None:
    assert spans(ask(*answers)) == (answers if expected is None else expected)


# --- documents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "judged", "expected"),
    [
        ("times.md", {}, {"times.md": 2}),
        ("", {}, {}),
        ("times.md", {"prices.md": 2, "times.md": 1, "coats.md": 0}, {"prices.md": 2, "times.md": 1}),
        ("", {"times.md": 2}, {"times.md": 2}),
        ("times.md", {"coats.md": 0}, {}),
        ("", {"times.md": 3, "coats.md": -1}, {"times.md": 2}),
    ],
)
def test_judged_files_go_before_the_one_that_the_labels_name(
    document: str, judged: Mapping[str, int], expected: dict[str, int]
) -> None:
    assert of_documents(ask(document=document), judged) == expected


@pytest.mark.parametrize("expected", NOT_ANSWERED)
def test_no_document_answers_what_cannot_be_answered(expected: Expected) -> None:
    assert of_documents(ask(document="times.md", expected=expected)) == {"times.md": 1}
    assert of_documents(ask(expected=expected), {"a.md": 2, "b.md": 1, "c.md": 0}) == {"a.md": 1, "b.md": 1}


# --- passages of documents ------------------------------------------------------------------------------------------

JUDGED = {"times.md": 2, "prices.md": 1, "coats.md": 0}


@pytest.mark.parametrize(
    ("text", "source", "answers", "grade"),
    [
        (TIMES, "times.md", ("nine",), 2),
        (PRICES, "times.md", ("nine",), 1),
        (PRICES, "times.md", (), 2),
        (PRICES, "times.md", ("yes",), 2),
        (PRICES, "times.md", ("word " * 13,), 2),
        (PRICES, "times.md", ("yes", "nine"), 1),
        (PRICES, "times.md", ("nine", "four euros"), 2),
        (PRICES, "prices.md", ("nine",), 1),
        (TIMES, "prices.md", ("nine",), 1),
        (TIMES, "coats.md", ("nine",), 0),
        (TIMES, "unknown.md", ("nine",), 0),
        (TIMES, "unknown.md", (), 0),
    ],
)
def test_a_passage_has_the_grade_of_its_document_where_it_holds_the_answer(
    text: str, source: str, answers: tuple[str, ...], grade: int
) -> None:
    assert of_passage(passage(text, source), ask(*answers), JUDGED) == grade


# --- by the text alone ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("judged", [{}, {"coats.md": 0}])
@pytest.mark.parametrize(
    ("text", "answers", "grade"),
    [(TIMES, ("nine",), 2), (PRICES, ("nine",), 0), (TIMES, (), None), (TIMES, ("no",), None)],
)
def test_without_a_document_the_text_tells_or_nothing_does(
    text: str, answers: tuple[str, ...], grade: int | None, judged: Mapping[str, int]
) -> None:
    assert of_passage(passage(text), ask(*answers), judged) == grade


@pytest.mark.parametrize(
    ("text", "answers", "grade"),
    [(TIMES, ("nine",), 2), (PRICES, ("nine",), 0), (TIMES, (), None), (TIMES, ("yes",), None)],
)
def test_a_page_of_the_web_is_told_by_its_text(text: str, answers: tuple[str, ...], grade: int | None) -> None:
    """Even one that is called like a judged file."""
    assert of_passage(page(text), ask(*answers, document="times.md"), JUDGED) == grade


@pytest.mark.parametrize("expected", NOT_ANSWERED)
@pytest.mark.parametrize(
    ("found", "judged", "answers", "grade"),
    [
        (passage(TIMES), {"times.md": 2}, (), 1),
        (passage(TIMES), {"times.md": 2}, ("nine",), 1),
        (passage(TIMES), {"times.md": 1}, ("nine",), 1),
        (passage(TIMES), {"times.md": 0, "b.md": 1}, ("nine",), 0),
        (passage(TIMES), {}, ("nine",), 0),
        (page(TIMES), {}, ("nine",), 0),
        (passage(TIMES), {}, (), None),
        (page(TIMES), {"times.md": 1}, (), None),
    ],
)
def test_nothing_answers_what_cannot_be_answered(
    found: Passage, judged: Mapping[str, int], answers: tuple[str, ...], grade: int | None, expected: Expected
) -> None:
    assert of_passage(found, ask(*answers, expected=expected), judged) == grade


# --- words, not letters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("nine", "NINE o'clock"),
        ("nine", "ninety, nineteen, and (nine)"),
        ("9", "9:00"),
        ("9", "1, 9, 3"),
        ("5.1", "version 5.1"),
        ("5%", "about 5%."),
        ("$5", "US$5"),
        ("C++", "in C++20 too"),
        ("nine", "nine-thirty"),
        ("Zürich", "In ZÜRICH"),
        ("東京", "東京都に住む"),
        ("กรุงเทพ", "อยู่กรุงเทพมหานคร"),
    ],
)
def test_an_answer_is_found(answer: str, text: str) -> None:
    assert of_passage(passage(text), ask(answer)) == 2


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("nine", "ninety and nineteen"),
        ("art", "a party"),
        ("B", "Bring a coat"),
        ("9", "1990"),
        ("5", "5.1 or 0.5"),
        ("955", "1,955 people"),
        ("Бор", "Борис"),
        ("nine in the morning", "nine in the mornings"),
    ],
)
def test_a_part_of_a_word_or_number_is_no_answer(answer: str, text: str) -> None:
    assert of_passage(passage(text), ask(answer)) == 0
