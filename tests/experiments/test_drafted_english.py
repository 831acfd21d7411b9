"""English sentences and the questions that they answer; what is not of the plain form is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.experiments.drafting.english import ask
from crag_core.experiments.drafting.keywords import Asked


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        ("The swimming pool was opened on 4 May 1987.", "When was the swimming pool opened?", "4 May 1987"),
        (
            "In 1996 the museum moved from Baker Street to the old brewery.",
            "In which year did the museum move from Baker Street to the old brewery?",
            "1996",
        ),
        ("The lift carries 8 people.", "How many people does the lift carry?", "8 people"),
        ("A locker costs £2 a day.", "How much does a locker cost a day?", "£2"),
        ("The annual fee is €35.", "How much is the annual fee?", "€35"),
        ("The tower is 62 metres high.", "How many metres high is the tower?", "62 metres"),
        (
            "Complaints must be answered within ten working days.",
            "Within how many working days must complaints be answered?",
            "ten working days",
        ),
        ("The guarantee lasts for two years.", "For how many years does the guarantee last?", "two years"),
        (
            "The night bus leaves at 23:40 from the station.",
            "At what time does the night bus leave from the station?",
            "23:40",
        ),
        ("The filter is replaced every six months.", "How often is the filter replaced?", "every six months"),
        ("The committee meets four times a year.", "How often does the committee meet?", "four times a year"),
        (
            "There are three fire exits on the second floor.",
            "How many fire exits are there on the second floor?",
            "three fire exits",
        ),
        ("The shop is open from 09:00 to 17:30.", "When is the shop open?", "from 09:00 to 17:30"),
        ("Applications are accepted until 15 March.", "Until when are applications accepted?", "15 March"),
        (
            "The orchestra has 64 permanent members, most of them from abroad.",
            "How many permanent members does the orchestra have?",
            "64 permanent members",
        ),
        (
            "Visitors may park free of charge for 90 minutes.",
            "For how many minutes may visitors park free of charge?",
            "90 minutes",
        ),
        (
            "The line was served until 1930 by a small company.",
            "Until when was the line served by a small company?",
            "1930",
        ),
        ("Up to six unused days may be carried over.", "How many unused days may be carried over?", "six unused days"),
        (
            "Office staff at the mill may work from home on up to two days a week once they have passed probation.",
            "On how many days a week may office staff at the mill work from home?",
            "two days",
        ),
        (
            "The decision for the first sailings is published by 05:15 on the website, by text message and by radio.",
            "By what time is the decision for the first sailings published on the website?",
            "05:15",
        ),
        (
            "The leave year runs from 1 February to 31 January.",
            "When does the leave year run?",
            "from 1 February to 31 January",
        ),
        (
            "For five months the mail came by fishing boat.",
            "For how many months did the mail come by fishing boat?",
            "five months",
        ),
        (
            "Full-time staff receive 27 days of paid leave a year on top of the eight public holidays.",
            "How many days of paid leave a year do full-time staff receive on top of the eight public holidays?",
            "27 days",
        ),
        ("Version 1 will be switched off on 30 June 2025.", "When will Version 1 be switched off?", "30 June 2025"),
        ("Grey Plover joined the club in 2009.", "In which year did Grey Plover join the club?", "2009"),
        (
            "Invoices are paid within 21 days of receipt.",
            "Within how many days of receipt are invoices paid?",
            "21 days",
        ),
    ],
)
def test_a_fact_is_asked_for(sentence: str, question: str, answer: str) -> None:
    assert ask(sentence) == Asked(question, answer)


@pytest.mark.parametrize(
    "sentence",
    [
        "It was opened on 4 May 1987.",
        "The ferry leaves the pier with them at 09:00.",
        "The keeper of the school leaves it at 09:00.",
        "They pay £12 a month.",
        "This takes about 20 minutes.",
        "She carried 30 passengers.",
        "We answer within 20 working days.",
        "You may stay for 3 nights.",
        "Opening hours",
        "Opened in 1987.",
        "| Adult | £12.50 |",
        "Price: £4.60; Allergens: wheat, milk.",
        "However, the fee is £20.",
        "The house is yellow.",
        "The other valve opens at 8 bar.",
        "The hall does not open before 09:00.",
        "Nobody waits longer than 10 minutes.",
        "The list of 12 rules for guests of the older house.",
        "Was the hall opened in 1987?",
        "Stop after 20 minutes!",
        "The report says that the hall opened in 1987.",
        "The three islands have a shared school.",
        "The clinic can treat type 2 infections.",
        "Books lent by the library cost £4 a week.",
        "The best boat, which sank in 1931, carried sheep.",
        "Anyone who arrives after 22:00 rings the bell.",
        "Write to office@example.org within 20 days, please see https://example.org.",
        "The pool (opened in 1987) is closed.",
        "The crews put 4 crates ashore.",
        "Set in 1914, the film was shot in Spain.",
    ],
)
def test_what_has_no_fact_no_subject_of_its_own_or_another_form_is_refused(sentence: str) -> None:
    assert ask(sentence) is None


def test_a_sentence_may_be_broken_into_lines() -> None:
    assert ask("The swimming\n  pool was opened\non 4 May 1987.") == Asked(
        "When was the swimming pool opened?", "4 May 1987"
    )


@given(st.text(max_size=300).map(lambda text: f"The {text} hall has 12 {text} rooms."))
@settings(deadline=None, max_examples=200)
def test_whatever_is_asked_is_one_line_and_does_not_hold_its_answer(sentence: str) -> None:
    found = ask(sentence)
    if found is not None:
        assert found.answer in " ".join(sentence.split())
        assert found.answer.casefold() not in found.question.casefold()
        assert found.question.endswith("?") and "\n" not in found.question


@given(st.text(max_size=600))
@settings(deadline=None, max_examples=200)
def test_any_text_is_taken(text: str) -> None:
    ask(text)
    ask(f"The {text}.")
