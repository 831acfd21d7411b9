"""Two documents that say the same with other numbers."""

import pytest

from crag_core.base.types.knowledge import Excerpt, Knowledge, StripVerdict
from crag_core.base.types.passages import Passage
from crag_core.trace.grounding.disagreement import disagreement
from tests.builders import strips_of

NEW, OLD = "# Travel policy\n\nThe daily allowance abroad is 52 euros.", "The daily allowance abroad is 41 euros."
FOUND = "Two documents differ in a number: 52 in b.md, 41 in a.md."


ASKED = "How much is the allowance?"


def known(*texts: tuple[str, str]) -> Knowledge:
    excerpts = (Excerpt(Passage(f"p{place}", text, name), text) for place, (name, text) in enumerate(texts))
    return Knowledge(tuple(excerpts), (), ())


@pytest.mark.parametrize(
    "answer", ["“The daily allowance abroad is 52 euros.” [2]", "You get 52 euros a day [2].", "52, or 41 [2, 1]"]
)
def test_an_answer_of_which_another_document_has_another_number_says_so(answer: str) -> None:
    assert disagreement(ASKED, known(("a.md", OLD), ("b.md", NEW)), answer) == FOUND


@pytest.mark.parametrize(
    ("other", "answer"),
    [
        (("b.md", OLD), "52 euros [1]"),  # one document
        (("a.md", NEW), "52 euros [1]"),  # the same number
        (("a.md", "The daily allowance at home is 41 euros, and breakfast costs 9."), "52 euros [1]"),  # other words
        (("a.md", "It is 41."), "52 euros [1]"),
        (("a.md", OLD), "An allowance is paid [1]."),  # the answer has no such number
        (("a.md", OLD), "52 euros"),  # nothing is cited
    ],
)
def test_nothing_else_is_called_a_difference(other: tuple[str, str], answer: str) -> None:
    assert disagreement(ASKED, known(("b.md", NEW), other), answer) == ""


def test_rows_of_two_tables_with_the_same_heads_are_compared() -> None:
    rows = [("2024.csv", "route: R1; who: Adult; single: 7.90"), ("2025.csv", "route: R1; who: Adult; single: 8.40")]
    said = disagreement(ASKED, known(*rows), "“route: R1; who: Adult; single: 8.40” [2]")
    assert said == "Two documents differ in a number: 8.40 in 2025.csv, 7.90 in 2024.csv."


def test_kept_rows_are_compared_one_by_one() -> None:
    """Their excerpt has them in one line."""
    excerpts, verdicts = [], []
    for name, adult, child in (("2024.csv", "6.50", "3.50"), ("2025.csv", "7.20", "3.90")):
        rows = [f"item: Entry {who}; unit: day; price: {price}" for who, price in (("adult", adult), ("child", child))]
        of = Passage(name, "\n".join(rows), name)
        strips = strips_of(of, (rows[0], 0.9), (rows[1], 0.8))
        excerpts.append(Excerpt(of, " ".join(rows), tuple(one.id for one in strips)))
        verdicts += [StripVerdict(one, True, "") for one in strips]
    found = disagreement("What does a day cost?", Knowledge(tuple(excerpts), (), tuple(verdicts)), "7.20 [2]")
    assert found == "Two documents differ in a number: 7.20 in 2025.csv, 6.50 in 2024.csv."


@pytest.mark.parametrize(
    ("question", "cited", "other"),
    [
        # What the question names, only one of them has.
        (
            "What does the X100 weigh?",
            ("x100-manual.md", "The pump weighs 12 kg."),
            ("x200.md", "The pump weighs 15 kg."),
        ),
        ("What does it weigh?", ("a.md", "The pump X100 weighs 12 kg."), ("b.md", "The pump X200 weighs 15 kg.")),
        (
            "What does a season ticket for children cost?",
            ("a.md", "A season ticket for children at all of our swimming pools costs 20 euros."),
            ("b.md", "A season ticket for adults at all of our swimming pools costs 40 euros."),
        ),
        ("Who worked here in 2023?", ("a.md", "In 2023 we had 120 staff."), ("b.md", "In 2024 we had 135 staff.")),
        (
            "What is the 2025 rate?",
            ("rates-2025.md", "The rate is 12 euros."),
            ("rates-2024.md", "The rate is 14 euros."),
        ),
        # Two rows.
        (
            "What do gaskets cost?",
            ("a.csv", "part: gasket; material: rubber; origin: Italy; stock: 12; price: 4"),
            ("b.csv", "part: seal; material: rubber; origin: Italy; stock: 15; price: 5"),
        ),
        ("How many seats?", ("a.csv", "room: 12; seats: 40; floor: 1"), ("b.csv", "room: 14; seats: 60; floor: 2")),
        # One number.
        ("What is paid?", ("a.md", "The grant is 1,500 euros."), ("b.md", "The grant is 1500.00 euros.")),
        ("What is paid?", ("a.md", "4.2 Meals are paid by us."), ("b.md", "4.3 Meals are paid by us.")),
    ],
)
def test_what_is_about_another_thing_is_no_difference(
    question: str, cited: tuple[str, str], other: tuple[str, str]
) -> None:
    assert disagreement(question, known(cited, other), f"“{cited[1]}” [1]") == ""


def test_a_question_that_names_the_older_number_is_told_of_both() -> None:
    assert disagreement("Is the allowance still 41 euros?", known(("a.md", OLD), ("b.md", NEW)), "52 [2]") == FOUND
