"""What the trained evaluator reads in place of long codes, and how sure it is of the row of one."""

from __future__ import annotations

import threading

import pytest

from crag_core.base.types.passages import ANSWERING, Passage
from crag_core.evaluators.shared.named import as_read
from crag_core.evaluators.shipped import strip_evaluator

ROWS = "Part number: 3-0017-68; Name: Knob; Price EUR: 45,97\nPart number: 7-0064-18; Name: Hose; Price EUR: 67,01"


@pytest.mark.parametrize(
    ("question", "heading", "text", "read"),
    [
        (
            "What does 7-0064-18 cost?",
            "Spares: ",
            ROWS,
            ("A1", "Spares: Part number: A1; Name: Hose; Price EUR: 67,01"),
        ),
        ("What does 7-0064-19 cost?", "", ROWS, ("7-0064-19", ROWS)),
        ("What does E-207 cost?", "", "E-207: 3 euros", ("E-207", "E-207: 3 euros")),
        ("Is COVID-19 in B12?", "", "COVID-19 and B12", ("COVID-19", "COVID-19 and B12")),
        ("Is 40123B or 50123B dearer?", "", "40123B: 3\n50123B: 4", ("A1 or B2", "A1: 3\nB2: 4")),
    ],
    ids=["row of the code", "absent code", "short code", "words", "two codes"],
)
def test_long_codes_in_both_are_read_as_short_words(
    question: str, heading: str, text: str, read: tuple[str, str]
) -> None:
    found, shown = as_read(question, heading, text)
    assert read[0] in found and shown == read[1]


@pytest.mark.parametrize(("asked", "sure"), [("What does part {} cost?", True), ("How heavy is part {}?", False)])
def test_the_row_of_a_code_is_told_by_what_it_says_and_not_by_its_digits(asked: str, sure: bool) -> None:
    for code in ("7-0064-18", "3-0017-68"):
        graded = strip_evaluator().grade(asked.format(code), [Passage("1", ROWS, "spares.csv")], threading.Event())
        answering = graded[0].part(ANSWERING)
        assert answering is not None and (answering > 0.75) is sure and (sure or answering < 0.5)
