from __future__ import annotations

import pytest

from crag_core.base.text.codes import codes_of, has_code, other_code, with_code_as
from crag_core.base.text.comparisons import says_both, two_things


@pytest.mark.parametrize(
    ("question", "codes"),
    [
        ("What does part 7-0064-18 cost?", ("7-0064-18",)),
        ("the display shows e207, what now?", ("e207",)),
        ("Does E-207 concern the KX9 or IR-2024-07?", ("E-207", "KX9", "IR-2024-07")),
        ("Who was 1st of 50-year-old runners over 5km in 3min at 10:30 on 2024-07-12?", ()),
        ("What cost £412.00 in 1990s, 2020-21, 10-20 or 24/7, and weighs 3.5 kg?", ()),
        ("Which of 12/07/2024 and 12-07-24 is right?", ()),
    ],
)
def test_codes_of_a_question(question: str, codes: tuple[str, ...]) -> None:
    assert codes_of(question) == codes


@pytest.mark.parametrize(
    ("text", "code", "held"),
    [
        ("Error e207 means low oil.", "E-207", True),
        ("Error E 207.", "e207", True),
        ("Error E-2071", "E-207", False),
        ("FE-207", "E-207", False),
    ],
)
def test_a_text_holds_a_code_however_it_is_written(text: str, code: str, held: bool) -> None:
    assert has_code(text, code) is held


def test_another_code_is_one_that_is_made_alike() -> None:
    assert other_code("7-0064-18, KX-9, 7-0064-16", "7-0064-18") == "7-0064-16"
    assert other_code("7-0064-18 fits KX-9", "7-0064-18") == ""


def test_a_word_stands_in_for_a_code_however_it_is_written() -> None:
    assert with_code_as("A1", "7-0064-18", "Parts 7-0064-18, 7 0064 18 and 7-0064-188") == "Parts A1, A1 and 7-0064-188"


@pytest.mark.parametrize(
    ("question", "things"),
    [
        ("Compare the opening hours of sauna and pool.", ("sauna", "pool")),
        ("Compare the old lease with the new lease", ("old lease", "new lease")),
        ("Which opens earlier, the sauna or the pool?", ("sauna", "pool")),
        ("What does a double room with breakfast and a dog cost?", ("breakfast", "dog")),
        ("When does the sauna open and when does the pool open?", ("sauna", "pool")),
        ("How much is a single room, and how much is a double room?", ("single", "double")),
        ("When does the sauna open?", None),
        ("Where and when was she born?", None),
        ("Who is she and who are they?", None),
        ("What is the difference between a crime and a tort?", None),
        ("Is one suit higher than another in poker?", None),
        ("What does a room cost and may I bring a dog?", ("room", "dog")),
        ("What does a bicycle cost from Kelderport to Vennick and may I bring a dog?", ("bicycle", "dog")),
        ("Where do I park, and what does it cost?", ("park", "cost")),
        ("What do I do if the alarm rings and is not stopped?", None),
        ("When can members and guests use the gym?", None),
    ],
)
def test_two_things_asked_together(question: str, things: tuple[str, str] | None) -> None:
    assert two_things(question) == things


def test_both_are_said_in_one_sentence_or_they_are_not() -> None:
    assert says_both("Hours. The pool opens before the saunas do.", ("sauna", "pool"))
    assert not says_both("The sauna opens at 10:00. The pool opens at 7:00.", ("sauna", "pool"))
