"""English sentences and the questions that they answer; what is not certain is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.experiments.drafting.asking import Casing
from crag_core.experiments.drafting.cloze import LONGEST, SHORTEST, Asked, ask


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        ("The swimming pool was opened on 4 May 1987.", "When was the swimming pool opened?", "4 May 1987"),
        (
            "In 1996 the museum moved from Baker Street to the old brewery.",
            "In which year did the museum move from Baker Street to the old brewery?",
            "1996",
        ),
        (
            "The library lends each reader up to twelve books.",
            "How many books does the library lend each reader?",
            "twelve books",
        ),
        ("The lift carries 8 people.", "How many people does the lift carry?", "8 people"),
        ("A locker costs £2 a day.", "How much does a locker cost a day?", "£2"),
        ("The annual fee is €35.", "How much is the annual fee?", "€35"),
        ("The boiler switches off above 85 °C.", "Above what temperature does the boiler switch off?", "85 °C"),
        ("The tower is 62 metres high.", "How many metres high is the tower?", "62 metres"),
        ("About 40 % of the students live in the city.", "What percentage of the students live in the city?", "40 %"),
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
            "Wait at least 25 minutes before you open the lid.",
            "How many minutes should you wait before you open the lid?",
            "25 minutes",
        ),
        ("Store the vaccine below 8 °C.", "Below what temperature should you store the vaccine?", "8 °C"),
        (
            "Rinse the valve with water for 30 seconds.",
            "For how many seconds should you rinse the valve with water?",
            "30 seconds",
        ),
        (
            "There are three fire exits on the second floor.",
            "How many fire exits are there on the second floor?",
            "three fire exits",
        ),
        ("Our safety officer is Dana Whitlock.", "Who is our safety officer?", "Dana Whitlock"),
        ("Dr. Amira Haddad chairs the ethics committee.", "Who chairs the ethics committee?", "Dr. Amira Haddad"),
        ("The bridge was designed by Elsa Morgenroth.", "By whom was the bridge designed?", "Elsa Morgenroth"),
        ("The meeting takes place on Mondays.", "On which day of the week does the meeting take place?", "Mondays"),
        ("The shop is open from 09:00 to 17:30.", "When is the shop open?", "from 09:00 to 17:30"),
        (
            "The lecture will be held on Tuesday, 3 June 2025, in the town hall.",
            "When will the lecture be held?",
            "Tuesday, 3 June 2025",
        ),
        ("Five trainees passed the final exam.", "How many trainees passed the final exam?", "Five trainees"),
        ("Prices rose by 3.5 % last year.", "By what percentage did prices rise last year?", "3.5 %"),
        ("The new kitchen cost £48,000.", "How much did the new kitchen cost?", "£48,000"),
        ("Applications are accepted until 15 March.", "Until when are applications accepted?", "15 March"),
        ("The radio operator listens on channel 9.", "On which channel does the radio operator listen?", "channel 9"),
        (
            "If the alarm rings twice, the porter locks the gate after 5 minutes.",
            "After how many minutes does the porter lock the gate if the alarm rings twice?",
            "5 minutes",
        ),
        (
            "The orchestra has 64 permanent members, most of them from abroad.",
            "How many permanent members does the orchestra have?",
            "64 permanent members",
        ),
        ("Twenty volunteers clean the beach.", "How many volunteers clean the beach?", "Twenty volunteers"),
        ("The archive has been closed since 2019.", "Since when has the archive been closed?", "2019"),
        (
            "The first satellite, the Kestrel, was launched in 1971.",
            "In which year was the first satellite, the Kestrel, launched?",
            "1971",
        ),
        ("The caretaker reads the meter once a month.", "How often does the caretaker read the meter?", "once a month"),
        (
            "Visitors may park free of charge for 90 minutes.",
            "For how many minutes may visitors park free of charge?",
            "90 minutes",
        ),
        (
            "The deposit is refunded 14 days after the end of the lease.",
            "How many days after the end of the lease is the deposit refunded?",
            "14 days",
        ),
    ],
)
def test_a_fact_is_asked_for(sentence: str, question: str, answer: str) -> None:
    assert ask(sentence) == Asked(question, answer)


@pytest.mark.parametrize(
    "sentence",
    [
        "It was opened on 4 May 1987.",
        "They pay £12 a month.",
        "This takes about 20 minutes.",
        "She carried 30 passengers.",
        "We answer within 20 working days.",
        "You may stay for 3 nights.",
        "Opening hours",
        "Chapter 3: 12 rules for guests.",
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
        "Drugs for type 2 diabetes are kept in the cellar.",
        "The clinic can treat type 2 infections.",
        "Books lent by the library cost £4 a week.",
        "Books lent by the library on 4 May come back in June.",
        "The head of the Elsa Morgenroth school is Elsa Morgenroth.",
        "The best boat, which sank in 1931, carried sheep.",
        "Anyone who arrives after 22:00 rings the bell.",
        "The running costs of the two houses.",
        "Write to office@example.org within 20 days, please see https://example.org.",
        "The pool (opened in 1987) is closed.",
        "Bremen: 27 km.",
        "The crews put 4 crates ashore.",
        "Changes made in 1999 led to 3 accidents.",
        "The oldest was built in 1906.",
        "Set in 1914, the film was shot in Spain.",
    ],
)
def test_what_has_no_fact_no_subject_of_its_own_or_no_certain_grammar_is_refused(sentence: str) -> None:
    assert ask(sentence) is None


def test_a_sentence_may_be_broken_into_lines() -> None:
    assert ask("The swimming\n  pool was opened\non 4 May 1987.") == Asked(
        "When was the swimming pool opened?", "4 May 1987"
    )


@pytest.mark.parametrize(
    ("casing", "subject"),
    [
        (Casing(), "Price"),
        (Casing(small=frozenset({"price"})), "price"),
        (Casing(names=frozenset({"price"})), "Price"),
        (Casing(small=frozenset({"price"}), names=frozenset({"price"})), "Price"),
    ],
)
def test_whether_the_first_word_is_a_name_is_told_by_how_it_is_written_elsewhere(casing: Casing, subject: str) -> None:
    found = ask("Price counts for 60 marks.", casing)
    assert found is not None and found.question == f"For how many marks does {subject} count?"


def test_a_name_of_two_words_keeps_its_capitals_and_a_common_noun_loses_its_own() -> None:
    name, noun = ask("Grey Plover joined the club in 2009."), ask("Invoices are paid within 21 days of receipt.")
    assert name is not None and name.question == "In which year did Grey Plover join the club?"
    assert noun is not None and noun.question == "Within how many days of receipt are invoices paid?"


@given(st.text(max_size=300).map(lambda text: f"The {text} hall has 12 {text} rooms."))
@settings(deadline=None, max_examples=300)
def test_whatever_is_asked_is_one_line_and_does_not_hold_its_answer(sentence: str) -> None:
    found = ask(sentence)
    if found is not None:
        assert found.answer in " ".join(sentence.split())
        assert found.answer.casefold() not in found.question.casefold()
        assert SHORTEST <= len(found.question.split()) <= LONGEST
        assert found.question.endswith("?") and "\n" not in found.question


@given(st.text(max_size=600))
@settings(deadline=None, max_examples=300)
def test_any_text_is_taken(text: str) -> None:
    ask(text)
    ask(f"{text}.")
