"""Two documents that say the same with other numbers."""

import pytest

from crag_core.base.types.knowledge import Excerpt, Knowledge
from crag_core.base.types.passages import Passage
from crag_core.trace.grounding.disagreement import disagreement

NEW, OLD = "# Travel policy\n\nThe daily allowance abroad is 52 euros.", "The daily allowance abroad is 41 euros."
FOUND = "Two documents differ in a number: 52 in b.md, 41 in a.md."


def known(*texts: tuple[str, str]) -> Knowledge:
    excerpts = (Excerpt(Passage(f"p{place}", text, name), text) for place, (name, text) in enumerate(texts))
    return Knowledge(tuple(excerpts), (), ())


@pytest.mark.parametrize(
    "answer", ["“The daily allowance abroad is 52 euros.” [2]", "You get 52 euros a day [2].", "52, or 41 [2, 1]"]
)
def test_an_answer_of_which_another_document_has_another_number_says_so(answer: str) -> None:
    assert disagreement(known(("a.md", OLD), ("b.md", NEW)), answer) == FOUND


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
    assert disagreement(known(("b.md", NEW), other), answer) == ""


def test_rows_of_two_tables_with_the_same_heads_are_compared() -> None:
    rows = [("2024.csv", "route: R1; who: Adult; single: 7.90"), ("2025.csv", "route: R1; who: Adult; single: 8.40")]
    said = disagreement(known(*rows), "“route: R1; who: Adult; single: 8.40” [2]")
    assert said == "Two documents differ in a number: 8.40 in 2025.csv, 7.90 in 2024.csv."
