"""Years that a question is about and a text names."""

import pytest

from crag_core.base.text.years import years_asked, years_named


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("What did a ticket cost in 2023?", {2023}),
        ("What was the 2023 fare?", {2023}),
        ("How many matches were lost in 2021/22?", {2021, 2022}),
        ("What came in the years 1998 and 1999, and why?", {1998, 1999}),
        ("What came between the years 1998 and 2005?", set()),
        ("Which ships entered service after 2018?", set()),
        ("How many joined from 2018 to 2022?", set()),
        ("How many have joined since 2010?", set()),
        ("Who may sign for 2000 pounds?", set()),
        ("Is 2024 the number of the room?", set()),
        ("What does part 7-2024-18 cost?", set()),
    ],
)
def test_a_year_is_asked_about_where_a_word_before_says_so_and_no_unit_follows(text: str, years: set[int]) -> None:
    assert years_asked(text) == years


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("fares-2025.csv", {2025}),
        ("minutes_2025-01-30.docx", {2025}),
        ("League 2021-22", {2021, 2022}),
        ("Travel policy (valid from 1 February 2021)", {2021}),
        ("20251", set()),
        ("EUR 2025.50", set()),
    ],
)
def test_names_of_files_and_headings_name_years(text: str, years: set[int]) -> None:
    assert years_named(text) == years
